"""Check whether the standby databases answer and are up to date, for the command `doctor`."""

from __future__ import annotations

from rag.integrations.operations.standbys.standbys import Standbys
from rag.language import _, number, translated
from rag.monitoring.checks import Check
from rag.services import Services


def standby_checks(parts: Services) -> list[Check]:
    """Return a check per standby: the lag, or the reason why the standby is not used."""
    standbys = parts.database.standbys
    if not isinstance(standbys, Standbys):
        return []
    standbys.look()
    return [
        Check(
            name=_("Standby server {name}", name=standby.name),
            state="ok" if standby.is_usable else "warning",
            sentence=_(
                "This standby server answers read requests and is at most {lag} seconds behind. Requests answered so "
                "far: {reads}. Requests that went to the primary server, because this standby server was not up to "
                "date yet: {behind}.",
                lag=f"{standby.lag_seconds:.0f}",
                reads=number(standby.reads),
                behind=number(standby.behind),
            )
            if standby.is_usable
            else _(
                "This standby server is not used, and the primary server answers instead. {trouble}",
                trouble=translated(standby.trouble) or _("The standby server does not answer."),
            ),
        )
        for standby in standbys.all
    ]
