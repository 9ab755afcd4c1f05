"""The pages of a document as they were read, packed until the last one is: only then is known what repeats on them."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence

from rag.ingestion.loaders.headings import Style
from rag.ingestion.loaders.page_text import RepeatedLines, compounds_in, joined_lines
from rag.ingestion.loaders.pypdf_text import RawPage
from rag.types import Page

#: zlib's fastest level: a page of 2,000 characters with its styles takes about a kilobyte and a tenth of a millisecond.
FASTEST = 1


class RawPages:
    """Takes pages in their order and gives them back clean."""

    def __init__(self) -> None:
        self.has_text = False
        self._packed: list[bytes] = []
        self._repeated = RepeatedLines()
        self._compounds: set[str] = set()
        self._sizes: Counter[float] = Counter()

    def add(self, page: RawPage) -> None:
        """The next page."""
        self.has_text = self.has_text or bool(page.text.strip())
        self._repeated.add(page.text.split("\n"))
        self._compounds |= compounds_in(page.text)
        for line, style in page.styles.items():
            self._sizes[round(style.size, 1)] += len(line)
        styles = [(line, style.size, style.is_bold) for line, style in page.styles.items()]
        self._packed.append(zlib.compress(json.dumps((page.text, styles, page.warnings)).encode(), FASTEST))

    @property
    def body_size(self) -> float:
        """The size in points that most characters are set in; 0 when no page has sizes."""
        return self._sizes.most_common(1)[0][0] if self._sizes else 0.0

    def finished(self, labels: Sequence[str], said_first: Sequence[str]) -> Iterator[tuple[Page, dict[str, Style]]]:
        """The pages with their labels and the styles of their lines; the first says `said_first` besides its own."""
        compounds = frozenset(self._compounds)
        for number, packed in enumerate(self._packed, 1):
            raw, styles, warnings = json.loads(zlib.decompress(packed))
            text = joined_lines(self._repeated.without(number, raw.split("\n")), compounds)
            label = labels[number - 1] if labels else ""
            page = Page(
                number=number,
                text=text,
                method="text" if text.strip() else "none",
                label=label if label != str(number) else "",
                warnings=(*warnings, *(said_first if number == 1 else ())),
            )
            yield page, {line: Style(size, is_bold) for line, size, is_bold in styles}
