"""Find editions stored as separate documents: "Handbook 2024.pdf" beside "Handbook 2025.pdf"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from rag.answering.routes.documents import WholeDocument
from rag.answering.routes.recognise import YEAR

#: The mark of an edition in a title, file name or folder: a year with month and day, or a number.
MARK = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)(?:[-._/](?P<month>0[1-9]|1[0-2])(?:[-._/](?P<day>0[1-9]|[12]\d|3[01]))?)?(?!\d)"
    r"|(?<![^\W_])(?:v|version|versie|versión|versione|versão|edition|fassung|ausgabe|edición|édition)"
    r"[ ._-]?(?P<number>\d{1,3})(?!\d)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Edition:
    """A document with its place among the editions of a work."""

    document: WholeDocument
    begins: date
    number: int
    #: The mark as written, or the first day if set.
    words: str

    @property
    def place(self) -> tuple[date, int]:
        return self.begins, self.number


def two_editions(
    documents: Iterable[WholeDocument], meant: Sequence[WholeDocument], since: str
) -> tuple[Edition, Edition] | None:
    """Return an earlier and a later edition of the requested work, or `None` without two editions.

    Years in `since`, the question's words for the period, choose the editions; without years, an edition is compared
    with its predecessor. If no document is named, exactly one work must have several editions.
    """
    works: dict[tuple[str, ...], list[Edition]] = {}
    for document in documents:
        if edition := _edition(document):
            works.setdefault(_work(document), []).append(edition)
    wanted = {_work(document) for document in meant}
    chosen = [
        sorted(editions, key=lambda edition: edition.place)
        for work, editions in works.items()
        if len({edition.place for edition in editions}) > 1 and (not meant or work in wanted)
    ]
    if len(chosen) != 1:
        return None
    (ordered,) = chosen
    years = [int(year) for year in YEAR.findall(since)]
    named = [edition for edition in ordered if edition.begins.year in years]
    if len(named) > 1:
        return named[0], named[-1]
    last = len(ordered) - 1
    if len(meant) == 1:
        last = next((at for at, edition in enumerate(ordered) if edition.document.id == meant[0].id), last) or last
    before = [edition for edition in ordered[:last] if not years or edition.begins.year <= min(years)]
    return (before or ordered)[-1 if before else 0], ordered[last]


def _edition(document: WholeDocument) -> Edition | None:
    if document.valid_from is not None:
        return Edition(document, document.valid_from, 0, f"{document.valid_from:%Y-%m-%d}")
    for name in (document.title, document.file_name, document.folder):
        if (found := MARK.search(name)) is None:
            continue
        if number := found["number"]:
            return Edition(document, date.min, int(number), found[0])
        with suppress(ValueError):  # the 30th of February
            begins = date(int(found["year"]), int(found["month"] or 1), int(found["day"] or 1))
            return Edition(document, begins, 0, found[0])
    return None


def _work(document: WholeDocument) -> tuple[str, ...]:
    """Return the key of a work: language, folder and title without marks."""
    return (document.language, *(_bare(name) for name in (document.folder, document.title)))


def _bare(name: str) -> str:
    return " ".join(re.findall(r"\w+", MARK.sub(" ", name.replace("_", " ")).casefold()))
