"""Changes of figures, as the reader writes numbers."""

from __future__ import annotations

from rag.language import speaking
from rag.ui.analytics import Change, grown, moved


def test_a_change_is_written_as_the_reader_does_with_its_sign_in_front() -> None:
    assert (grown(110, 100), grown(90, 100)) == (Change("+10.0%", True), Change("-10.0%", True))
    assert grown(61_860, 100).delta == "+61,760%"
    assert (grown(100, 100), grown(1, 0), grown(None, 1)) == (Change(0, False), Change(None), Change(None))
    assert moved(0.51, 0.5).delta == "+1.0 points"
    with speaking("de"):
        assert grown(61_860, 100).delta == "+61.760\N{NO-BREAK SPACE}%"
        assert str(moved(0.488, 0.5).delta).startswith("-1,2 ")
