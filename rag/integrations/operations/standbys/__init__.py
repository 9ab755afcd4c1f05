"""Read from standbys: `standbys` chooses servers and measures their lag, `checks` reports to `doctor`."""

from __future__ import annotations

from rag.integrations.integration import Integration
from rag.language import N_

INTEGRATION = Integration(
    name="standbys",
    title=N_("Standby servers"),
    standbys=f"{__name__}.standbys:open_standbys",
    checks=f"{__name__}.checks:standby_checks",
)
