"""Turkish."""

from __future__ import annotations

from typing import Final

from memory_core.retrieval.languages.language import Language

TURKISH: Final = Language(
    "tr",
    function_words="""
bir bu şu o bunu şunu onu bunun şunun onun bunlar şunlar onlar her bütün hiç bazı
ben sen biz siz beni seni bizi sizi bana sana ona bize size onlara bende sende benim senin bizim sizin onların kendi
kim ne neyi neden niçin niye nasıl nerede nereye nereden hangi kaç zaman kimin kime
ve veya ya ile ama fakat çünkü ki de da eğer
için gibi kadar göre sonra önce üzere doğru
değil çok daha en mi mı mu mü var yok evet hayır
idi olan olarak oldu olur ise
    """,
    everyday=("Merhaba, teşekkürler",),
)
