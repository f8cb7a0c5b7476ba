"""Texts to embed: 200 that differ in kind and length, and those that tokenizers get wrong."""

# ruff: noqa: RUF001  (characters that look like others are what is tested)

from __future__ import annotations

import random

_SENTENCES = (
    "I finally adopted a dog from the shelter on Saturday.",
    "What did the doctor say about your knee?",
    "We moved to Lisbon in March 2021 because rents in Dublin had doubled.",
    "lol no way!!! 😂 did he really quit?",
    "The invoice #4471-B of $1,299.00 is overdue since 2024-02-29.",
    "She prefers oat milk, and she's allergic to peanuts.",
    "def embed(texts: list[str]) -> np.ndarray: return model.encode(texts)",
    "Traceback (most recent call last): KeyError: 'user_id'",
    "Deploy failed: container exited with code 137 (OOMKilled).",
    "Remind me to call grandma tomorrow at 5pm.",
    "My favourite painting is The Starry Night; I saw it at MoMA.",
    "Der Zug nach München fährt um 14:35 von Gleis 7.",
    "Ma sœur habite à Genève depuis deux ans.",
    "Вчера мы ходили в театр на «Чайку».",
    "私は毎朝お茶を飲みます。",
    "الاجتماع يوم الثلاثاء في الساعة العاشرة",
    "The quick brown fox jumps over the lazy dog.",
    "Quarterly revenue rose 12.5% to €3.4bn, beating estimates.",
    "ok",
    "Thanks!",
    "No, I have never been to Iceland, but my brother went twice.",
    "Photosynthesis converts carbon dioxide and water into glucose and oxygen.",
    "He set the oven to 220 degrees and forgot the bread.",
    "https://example.org/a/b?c=d&e=f#g",
    "SELECT name FROM users WHERE id = 42;",
    "The patient was given 5 mg of warfarin and monitored for a week.",
    "Can you recommend a book about the Ottoman Empire?",
    "We broke up. I don't want to talk about it.",
    "The committee postponed its vote on the amendment until after the recess.",
    "Her daughter won the regional chess championship at the age of nine.",
    "antidisestablishmentarianism and pneumonoultramicroscopicsilicovolcanoconiosis",
    "Turn left at the bakery, then walk two blocks; the red door is ours.",
    "I'm training for a marathon: 18 km today, 25 km on Sunday.",
    "The password policy requires 12 characters, one digit and one symbol.",
    "Σήμερα έχει ήλιο στην Αθήνα.",
    "Wake-up at 06:00, run, shower, stand-up at 09:15.",
    "Our cat Miso hides under the sofa whenever the bell rings.",
    "Kernel panic - not syncing: VFS: Unable to mount root fs",
    "It rained all week, so the festival was called off.",
    "Grazie mille per la cena di ieri sera!",
)


def varied(count: int = 200) -> list[str]:
    """The sentences, then conversations of one to five of them, the same in every run."""
    draw = random.Random(7)
    names = ("Ann", "Ben", "Chidi", "Dora", "Emre")
    made = list(_SENTENCES)
    while len(made) < count:
        turns = draw.sample(_SENTENCES, draw.choice((1, 2, 2, 2, 3, 5)))
        made.append(" ".join(f"{draw.choice(names)}: {turn}" for turn in turns))
    return made


NASTY = (
    "",
    " ",
    "\t\r\n",
    "\0",
    "a\0b\x01c\x7fd\x85e\x1cf",
    "\u200b\ufeff\u00ad",
    "\ufffd broken \ufffd",
    "[MASK]",
    "the [MASK] sat on the [CLS] mat [SEP] [PAD] [UNK]",
    "[mask] [Mask] [ MASK ] [MASK [[MASK]] x[MASK]y",
    "[MASK]\u0301",
    "w" * 100,
    "w" * 101,
    "w" * 5_000,
    "é" * 100,
    "é" * 101,
    "ΟΔΟΣ ΣΑΣ",
    "İstanbul ISTANBUL ıstanbul",
    "Straße STRASSE ẞ",
    "ﬁnance ǅ ﷺ Ⅷ ½ ²",
    "Å e\u0301 \u1e69 a\u0328\u0301",
    "don't can't it's O'Neill rock'n'roll",
    "a.b,c;d:e!f?g(h)i[j]k{l}m<n>o/p\\q|r@s#t$u%v^w&x*y-z_=+`~\"'",
    "“quotes” «guillemets» … — – ‐ · • ¿ ¡ § ¶",
    "price: 5€ 5£ 5¥ 5₹ ± × ÷ √ ∞ ≠",
    "你好世界 漢字かな交じり文 한국어 ㍿ 豈 \U00020000",
    "שלום עוֹלָם مرحبا بِالعالم हिन्दी ไทย தமிழ் ქართული",
    "👩\u200d👩\u200d👧\u200d👦 🇫🇷 🏳️\u200d🌈 ☃️ 1️⃣",
    "a\u00a0b\u2003c\u3000d\u2028e\u2029f\u180eg\u1680h",
    "\u202eevil\u202c",
    "\ue000 private \U000f0000",
    "\u0378 unassigned",
    "\u037e \u1fef \u2000",
    "x\u0300\u0301\u0302 \u0300 \u20dd",
    "unaffable embeddings tokenization ##ing # #",
    "word " * 400,
    "supercalifragilisticexpialidocious" * 40,
)
