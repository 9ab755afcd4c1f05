"""Report standbys to `doctor`."""

from __future__ import annotations

from rag.integrations.operations.standbys.standbys import Standbys
from rag.language import _, number, translated
from rag.monitoring.checks import Check
from rag.services import Services


def standby_checks(parts: Services) -> list[Check]:
    """Check which standbys respond, and give the reason for each excluded standby."""
    standbys = parts.database.standbys
    if not isinstance(standbys, Standbys):
        return []
    standbys.look()
    return [
        Check(
            name=_("Standby {name}", name=standby.name),
            state="ok" if standby.is_usable else "warning",
            sentence=_(
                "It answers reads, {lag} seconds behind at most: {reads} so far; {behind} went to the primary because "
                "of what it had not replayed yet.",
                lag=f"{standby.lag_seconds:.0f}",
                reads=number(standby.reads),
                behind=number(standby.behind),
            )
            if standby.is_usable
            else _(
                "It is left out, and the primary answers. {trouble}",
                trouble=translated(standby.trouble) or _("It does not answer."),
            ),
        )
        for standby in standbys.all
    ]
