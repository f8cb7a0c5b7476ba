"""Text that is not plain English is found, too, by whole words where there are words and by any part where not."""

import unicodedata

import pytest

from memory_core import Memory

TEXTS = (
    "\u732b\u306f\u516c\u5712\u3067\u663c\u5bdd\u3092\u3059\u308b\u306e\u304c\u597d\u304d\u3067\u3059",
    "\u5979\u559c\u6b22\u559d\u8309\u8389\u82b1\u8336",
    "\u0630\u0647\u0628\u062a \u0625\u0644\u0649 \u0627\u0644\u0645\u0643\u062a\u0628\u0629 \u0623\u0645\u0633",
    "I love \u30e9\u30fc\u30e1\u30f3 from \u672d\u5e4c very much",
    "Das Caf\u00e9 in Z\u00fcrich",
    "Concatenate the strings",
)
JAPANESE, CHINESE, ARABIC, MIXED, GERMAN, ENGLISH = TEXTS


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("\u516c\u5712", JAPANESE),
        ("\u732b", JAPANESE),
        ("\u8309\u8389\u82b1\u8336", CHINESE),
        ("\u8336", CHINESE),
        ("\u0627\u0644\u0645\u0643\u062a\u0628\u0629", ARABIC),
        ("\u0627\u0644\u0645\u0643\u062a\u0628\u0647", ARABIC),
        ("\u0645\u0643\u062a\u0628\u0629", ARABIC),
        ("\u0648\u0627\u0644\u0645\u0643\u062a\u0628\u0629", ARABIC),
        ("\u0644\u0644\u0645\u0643\u062a\u0628\u0629", ARABIC),
        ("\u30e9\u30fc\u30e1\u30f3", MIXED),
        ("\uff97\uff70\uff92\uff9d", MIXED),
        ("\u672d\u5e4c love", MIXED),
        ("cafe", GERMAN),
        (unicodedata.normalize("NFD", "Z\u00dcRICH"), GERMAN),
        ("string", ENGLISH),
    ],
    ids=[
        "japanese", "one character", "chinese", "one character of a run", "arabic", "arabic with heh",
        "arabic without article", "arabic with a conjunction", "arabic with a preposition", "katakana",
        "half-width", "two scripts", "no accent", "decomposed", "english",
    ],
)  # fmt: skip
async def test_words_of_any_script_are_found(query: str, found: str) -> None:
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many(TEXTS)
        assert [hit.record.text for hit in await handle.search(query)] == [found]


async def test_part_of_a_word_is_found_by_mode_substring_only() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many(TEXTS)
        assert await handle.search("cat") == []
        assert [hit.record.text for hit in await handle.search("cat", mode="substring")] == [ENGLISH]


async def test_a_substring_is_found_however_its_characters_are_composed() -> None:
    async with Memory(":memory:", embedder=None) as memory:
        handle = memory.bind(app="demo", user="ann")
        await handle.add_many(unicodedata.normalize(form, text) for text in TEXTS for form in ("NFC", "NFD"))
        for form in ("NFC", "NFD"):
            assert len(await handle.search(unicodedata.normalize(form, "z\u00dcrich"), mode="substring")) == 2
