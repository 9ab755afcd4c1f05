"""Summarise a period in a digest for e-mail and other programs, as text and as HTML.

Texts are in the current language, which the caller sets with `rag.language.speaking`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from html import escape
from typing import Any

from rag.language import _, current, day, direction, dollars, duration, ngettext, number, percentage
from rag.records.analytics import FIRST, WHOLE, Analytics, Filters, Period, StageTimes, Summary
from rag.records.gaps import Gap, Gaps
from rag.types import Who, tenant_of

MOST_GAPS, MOST_DOCUMENTS = 5, 5


@dataclass(frozen=True)
class Digest:
    """Sections with a heading and lines; each line is (label, text)."""

    title: str
    sections: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    #: Questions by day, to be drawn.
    days: Sequence[tuple[date, int]] = ()
    #: Whether a median comes from daily sums, exact only within 1 %, which the line notes.
    is_about: bool = False

    def as_text(self) -> str:
        """Return the digest as plain text in two columns."""
        lines = [self.title, "=" * len(self.title)]
        for heading, rows in self.sections:
            lines += ["", heading, "-" * len(heading)]
            lines += [f"{label:<28} {value}".rstrip() for label, value in rows] or [_("none")]
        return "\n".join(lines) + "\n"

    def as_event(self, period: Period) -> dict[str, Any]:
        """Return the digest as JSON for other programs: sections, and the plain text."""
        return {
            "first": period.first.isoformat(),
            "last": period.last.isoformat(),
            "title": self.title,
            "sections": [
                {"heading": heading, "lines": [{"label": label, "value": value} for label, value in rows]}
                for heading, rows in self.sections
            ],
            "text": self.as_text(),
            "is_about": self.is_about,
        }

    def as_html(self) -> str:
        """Return the digest as a complete HTML page without external resources."""
        parts = []
        for heading, rows in self.sections:
            cells = "".join(
                f'<tr><td style="padding:4px 0;padding-inline-end:24px;color:#555">{escape(label)}</td>'
                f'<td style="padding:4px 0">{escape(value)}</td></tr>'
                for label, value in rows
            )
            parts.append(
                f"<h2>{escape(heading)}</h2>" + (f"<table>{cells}</table>" if rows else f"<p>{escape(_('none'))}</p>")
            )
        title = escape(self.title)
        return (
            f'<!doctype html><html lang="{current()}" dir="{direction()}"><head><meta charset="utf-8">'
            f"<title>{title}</title></head>"
            f'<body style="font-family:sans-serif;max-width:640px;margin:24px auto"><h1>{title}</h1>'
            f"{''.join(parts)}</body></html>\n"
        )


def digest_title(company: str, period: Period, filters: Filters, chosen: Sequence[str] = ()) -> str:
    """Return a digest's title: company and period.

    If `filters` are set, the title also has their displayed names, `chosen`.
    """
    title = _("{name}: {first} to {last}", name=company, first=day(period.first), last=day(period.last))
    if filters == Filters():
        return title
    return ": ".join(
        filter(None, (_("{title}, only questions that match the filters", title=title), " · ".join(chosen)))
    )


def make_digest(analytics: Analytics, gaps: Gaps, who: Who, period: Period, filters: Filters, *, title: str) -> Digest:
    """Build a digest: metrics for the period and the previous period, unanswered questions, and the most used
    documents.
    """
    gaps.group(tenant_of(who))
    summary = analytics.summary(who, period, filters)
    used = analytics.top_documents(who, period, filters, limit=MOST_DOCUMENTS)
    missing = [(_times(gap), gap.question) for gap in gaps.list(who, period, filters, limit=MOST_GAPS)]
    return Digest(
        title=title,
        sections=(
            (_("Questions"), _figures(summary)),
            # Gaps are of no document.
            *([(_("Not answered yet, most asked first"), missing)] if filters.document_id is None else []),
            (
                _("Most used documents"),
                [(ngettext("{count} question", "{count} questions", use.questions), use.title) for use in used],
            ),
        ),
        days=[(day.day, day.questions) for day in summary.by_day],
        is_about=any(times.is_about for times in (*summary.times.values(), *summary.previous_times.values())),
    )


def _figures(summary: Summary) -> list[tuple[str, str]]:
    now, before = summary.current, summary.previous
    rows = [
        (_("Questions"), _with_previous(number(now.questions), number(before.questions))),
        (_("People"), _with_previous(number(now.people), number(before.people))),
        (_("Answered"), _with_previous(_percent(now.answered_rate), _percent(before.answered_rate))),
        (_("Rated helpful"), _with_previous(_percent(now.helpful_rate), _percent(before.helpful_rate))),
        (
            _("{figure}, middle value (median)", figure=_("Time to the first words")),
            _with_previous(*_seconds(summary, FIRST)),
        ),
        (
            _("{figure}, middle value (median)", figure=_("Time to the whole answer")),
            _with_previous(*_seconds(summary, WHOLE)),
        ),
        (_("Cost"), _with_previous(_dollars(now.known_cost), _dollars(before.known_cost))),
    ]
    if now.unpriced_calls:
        rows.append(
            (_("Calls without a price"), _("{calls}, not included in the cost", calls=number(now.unpriced_calls)))
        )
    return rows


def _with_previous(now: str, before: str) -> str:
    return _("{now} (before: {before})", now=now, before=before)


def _percent(share: float | None) -> str:
    return "–" if share is None else percentage(share, 0)


def _dollars(cost: Decimal | None) -> str:
    return _("price not known") if cost is None else dollars(cost, 2)


def _seconds(summary: Summary, stage: str) -> tuple[str, str]:
    def to_text(times: StageTimes | None) -> str:
        return "–" if times is None else duration(times.p50_ms, is_about=times.is_about)

    return to_text(summary.times.get(stage)), to_text(summary.previous_times.get(stage))


def _times(gap: Gap) -> str:
    times = ngettext("asked once", "asked {count} times", gap.times)
    return _("{now} (before: {before})", now=times, before=number(gap.times_before))
