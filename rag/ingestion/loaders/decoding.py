"""Decode text by byte order mark, in UTF-8, by the declared encoding, or by the letters which appear.

Most bytes can be decoded in several East Asian encodings. Only the right encoding gives common letters: kana, common
Chinese characters, common Korean syllables. Standards are tried before the larger Windows encodings which extend them.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import chardet

#: Warnings for a file in an undeclared encoding other than UTF-8.
ENCODED = "This file was read as {encoding}."
MISSING = ("1 character could not be read.", "{count} characters could not be read.")
#: The UTF-32 mark starts with the UTF-16 mark and is tried first.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Encodings for European, Middle Eastern and Thai documents.
GUESSED = (
    "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "koi8_r", "koi8_u", "cp866",
    "iso8859_2", "iso8859_5", "iso8859_6", "mac_cyrillic", "mac_roman", "cp850", "cp852", "cp874",
)  # fmt: skip
#: Encodings preferred if their confidence is lower by at most this much.
USUAL, NEARLY_AS_SURE = ("cp1252", "cp1251", "cp1250"), 0.02
BEYOND_ASCII = re.compile(r"\S{0,40}[^\x00-\x7f\s]\S{0,40}")
SIGNS = frozenset("€–—…“”„‘’•™§°²³·©®½¼ ")
SMALL, CAPITAL, SIGN = "a-zà-öø-ÿа-я", "À-ÖØ-ÞŠŽА-Я", "¡-©«-¶¸¹»-¿×÷ƒˆ˜†‡•…‰€™„‚"
ODD = re.compile(rf"[{SMALL}][{CAPITAL}]|[^\W\d_][{SIGN}][^\W\d_]|[©®±¬¦¹²³¼½¾†‡‰][^\W\d_]|[\x80-\x9f\ufffd]")
#: Bytes from the start used to guess an encoding.
LOOKED_AT = 65_536
DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.IGNORECASE)
#: Declared names, and the larger Windows sets mostly used under these names, likeliest first.
LARGER_SETS = {
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "ms_kanji", "windows-31j"),
                    ("cp932", "shift_jis_2004")),
    **dict.fromkeys(("euc-jp", "x-euc-jp"), ("euc_jp", "euc_jis_2004")),
    **dict.fromkeys(("euc-kr", "euckr", "ks_c_5601-1987", "ks_c_5601-1989", "korean", "windows-949"), ("cp949",)),
    **dict.fromkeys(("gb2312", "gb_2312-80", "gbk", "x-gbk", "chinese"), ("gb18030",)),
    **dict.fromkeys(("big5", "big5-hkscs", "x-x-big5", "cn-big5"), ("big5hkscs", "cp950")),
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "latin-1", "latin1"), ("cp1252", "latin-1")),
    "iso-8859-9": ("cp1254", "iso-8859-9"),
    "us-ascii": ("utf-8",),
}  # fmt: skip
#: Escape sequences before Japanese in mail: ISO-2022-JP has no byte outside ASCII.
ESCAPES = (b"\x1b$B", b"\x1b$@")
MAIL_SETS = ("iso2022_jp", "iso2022_jp_2004", "iso2022_jp_ext")
#: Names of encodings without bytes outside ASCII.
SEVEN_BITS = re.compile(r"(?:cs)?iso-?2022|utf-?7|hz", re.IGNORECASE)
#: Text counts as UTF-8 with at most one broken letter for this many intact letters.
INTACT_CHARACTERS = 20
UNDECODED = "\ufffd"


@dataclass(frozen=True)
class Decoded:
    """A decoded text with the encoding. `is_guessed` is true if the file did not declare the encoding."""

    text: str
    encoding: str
    is_guessed: bool = False

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return warnings about a guessed encoding, and about bytes which could not be decoded."""
        missing = self.text.count(UNDECODED) if self.encoding != "utf-8" or self.is_guessed else 0
        named = (ENCODED.format(encoding=self.encoding),) if self.is_guessed and self.encoding != "utf-8" else ()
        return (*named, *((MISSING[missing > 1].format(count=f"{missing:,}"),) if missing else ()))


def decode(content: bytes) -> tuple[str, str]:
    """Decode bytes and return the text. Undecodable bytes become U+FFFD. Never raises."""
    result = decoded(content)
    return result.text, result.encoding


def decoded(content: bytes, declared: str = "") -> Decoded:
    """Decode bytes by byte order mark, in UTF-8, by the declared encoding, or in the most likely encoding. Never
    raises.

    `declared` is the charset named in an email. 7-bit charsets are tried first, because their bytes are also valid
    UTF-8.
    """
    if SEVEN_BITS.match(declared) and content.isascii() and (name := _usable_encoding(content, declared)) is not None:
        return Decoded(content.decode(name, "replace"), name)
    for mark, name in MARKS:
        if content.startswith(mark):
            return Decoded(content[len(mark) :].decode(name, "replace"), name)
    if (wide := _detect_utf16(content)) is not None:
        return Decoded(content.decode(wide, "replace"), wide, is_guessed=True)
    if any(escape in content for escape in ESCAPES) and (mail := _first_usable(content, MAIL_SETS)) is not None:
        return Decoded(content.decode(mail), mail, is_guessed=True)
    try:
        return Decoded(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError as exc:
        # A text cut inside its last letter is still UTF-8.
        if exc.reason == "unexpected end of data" and not content[: exc.start].isascii():
            return Decoded(content.decode("utf-8", "replace"), "utf-8")
    text = content.decode("utf-8", "replace")
    broken = text.count(UNDECODED)
    if sum(character > "\x7f" for character in text) - broken >= INTACT_CHARACTERS * broken:
        return Decoded(text, "utf-8", is_guessed=True)
    if (declared_name := _usable_encoding(content, declared) if declared else _declared_encoding(content)) is not None:
        return Decoded(content.decode(declared_name, "replace"), declared_name)
    guess = _guess_encoding(content)
    return Decoded(content.decode(guess, "replace"), guess, is_guessed=True)


def _first_usable(content: bytes, names: Sequence[str]) -> str | None:
    for name in names:
        with suppress(UnicodeDecodeError):
            content.decode(name)
            return name
    return None


def _detect_utf16(content: bytes) -> str | None:
    """Detect UTF-16 without a byte order mark: many bytes at even positions, or many at odd positions, are zero."""
    sample = content[:LOOKED_AT]
    if len(sample) < 4 or len(content) % 2 or b"\0" not in sample:
        return None
    first, second = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if second > half * 0.05 and second > first * 4:
        return "utf-16-le"
    return "utf-16-be" if first > half * 0.05 and first > second * 4 else None


def _declared_encoding(content: bytes) -> str | None:
    match = DECLARED.search(content[:4096])
    return None if match is None else _usable_encoding(content, match[1].decode("ascii"))


def _usable_encoding(content: bytes, declared: str) -> str | None:
    declared = declared.lower()
    names = LARGER_SETS.get(declared, (declared,))
    sample = content[:LOOKED_AT]
    for name in names:
        try:
            if not isinstance(b"a".decode(name), str):
                return None
            sample.decode(name)
        except UnicodeDecodeError as exc:
            if exc.start < min(LOOKED_AT, len(content)) - 3:
                continue
        except Exception:  # unknown encodings, and codecs such as "zlib" with errors of any kind
            return None
        # A name may stand for several character sets; the first set able to decode every byte is used.
        return _first_usable(content, names) or name
    return None


def _guess_encoding(content: bytes) -> str:
    sample = content[:LOOKED_AT]
    if len(content) > LOOKED_AT:  # not inside a letter
        sample = sample[: max(sample.rfind(b"\n"), LOOKED_AT // 2) & ~1]
    if (eastern := east_asian_encoding(sample)) is not None:
        return eastern
    western = sample.decode("cp1252", "replace")
    if SIGNS.issuperset(character for character in western if character > "\x7f") and not _odd_words(western):
        return "cp1252"
    detected = chardet.detect_all(
        sample, ignore_threshold=True, include_encodings=GUESSED, compat_names=False, prefer_superset=False
    )
    guesses = [(candidate["encoding"], candidate["confidence"]) for candidate in detected if candidate["encoding"]]
    odd = {name: _odd_words(sample.decode(name, "replace")) for name, _ in guesses}
    guesses = [guess for guess in guesses if odd[guess[0]] == min(odd.values())]
    likely = [name for name, confidence in guesses if confidence + NEARLY_AS_SURE >= guesses[0][1]]
    return next((name for name in USUAL if name in likely), likely[0] if likely else "cp1252")


def _odd_words(text: str) -> int:
    """Count the words which suggest a wrong encoding.

    These mix scripts, or have signs between letters, or a capital after a lower-case letter beyond ASCII.
    """
    return sum(ODD.search(word) is not None or _scripts(word) > 1 for word in BEYOND_ASCII.findall(text))


def _scripts(word: str) -> int:
    return len(
        {
            unicodedata.name(character, " ").split()[0]
            for character in word
            if character.isalpha() and character not in "ªº"
        }
    )


@dataclass(frozen=True)
class Family:
    """The encodings for an East Asian language, by Python name.

    `standard` is tried first, then the larger `encodings`. `common` is the lead bytes' range (first, last) for the
    language's common characters.
    """

    standard: str
    common: tuple[int, int]
    encodings: tuple[str, ...]


FAMILIES = {
    "ja": Family("euc_jp", (0xB0, 0xCF), ("shift_jis", "cp932", "euc_jp", "euc_jis_2004")),
    "ko": Family("euc_kr", (0xB0, 0xC8), ("cp949",)),
    "zh": Family("gb2312", (0xB0, 0xD7), ("gb18030",)),
    "zh-Hant": Family("big5", (0xA4, 0xC6), ("big5", "big5hkscs", "cp950")),
}
#: Points for letters: common, in the language's script, punctuation, rare or impossible.
COMMON, OWN_SCRIPT, PUNCTUATION, HALF_WIDTH, RARE, IMPOSSIBLE = 1.0, 1.2, 0.5, 0.4, -0.5, -3.0
#: Japanese text with more letters than this contains kana.
FEW_CHARACTERS = 8
KANA = ("\u3041", "\u30ff")
HIGH = re.compile(rb"[\x80-\xff]")
NEIGHBOURING = re.compile(rb"(?<=[\x80-\xff])[\x80-\xff]|[\x80-\xff](?=[\x80-\xff])")
#: European letters beyond ASCII stand alone; at least this share of East Asian bytes has a neighbour.
LEAST_NEIGHBOURING = 0.5
#: Lowest average value per letter for accepting an encoding.
BELIEVED = 0.55
PUNCTUATION_MARKS = frozenset("。、・「」『』（）：；！？，．〜～…“”‘’《》【】ー　①②③④⑤⑥⑦⑧⑨⑩㈱€")


def east_asian_encoding(content: bytes) -> str | None:
    """Return the East Asian encoding, or `None` if the bytes look like text in a different language."""
    high = len(HIGH.findall(content))
    if not high or len(NEIGHBOURING.findall(content)) < LEAST_NEIGHBOURING * high:
        return None
    best: tuple[float, str] | None = None
    for language, family in FAMILIES.items():
        for encoding in family.encodings:
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError:
                continue
            score = _score(text, language, family)
            if score >= BELIEVED and (best is None or score > best[0] + 1e-9):
                best = score, encoding
    return best[1] if best else None


def _score(text: str, language: str, family: Family) -> float:
    counts = Counter(character for character in text if character > "\x7f")
    total = sum(counts.values())
    if language == "ja" and total > FEW_CHARACTERS and not any(KANA[0] <= character <= KANA[1] for character in counts):
        return IMPOSSIBLE
    return sum(_score_of_character(character, language, family) * count for character, count in counts.items()) / max(
        total, 1
    )


def _score_of_character(character: str, language: str, family: Family) -> float:
    if character in PUNCTUATION_MARKS:
        return PUNCTUATION
    if KANA[0] <= character <= KANA[1]:
        return OWN_SCRIPT if language == "ja" else RARE
    if "\uff61" <= character <= "\uff9f":
        return HALF_WIDTH
    if unicodedata.category(character) in ("Co", "Cn", "Cc"):
        return IMPOSSIBLE
    if "\uac00" <= character <= "\ud7a3" or "\u4e00" <= character <= "\u9fff":
        try:
            lead = character.encode(family.standard)[0]
        except UnicodeEncodeError:
            return RARE
        is_common = family.common[0] <= lead <= family.common[1]
        if language == "ko":
            return OWN_SCRIPT if is_common and character >= "\uac00" else RARE
        return COMMON if is_common else RARE
    return 0.0 if unicodedata.east_asian_width(character) in "FWA" else RARE
