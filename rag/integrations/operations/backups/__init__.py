"""Automatic backups.

`scheduled` makes and tests backups, `age` encrypts them, `commands` lists them, and `checks` reports to `doctor` and
`/metrics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag.integrations.integration import Integration
from rag.language import N_

if TYPE_CHECKING:
    from rag.settings import Settings


def check(settings: Settings) -> None:
    """Check the settings for backups. Raises `SettingsError`."""
    from rag.integrations.operations.backups.scheduled import ScheduledBackups

    ScheduledBackups(settings)


INTEGRATION = Integration(
    name="backups",
    title=N_("Automatic backups"),
    packages=("minio", "pyrage"),
    add_commands=f"{__name__}.commands:add_parsers",
    check=check,
    backups=f"{__name__}.scheduled:ScheduledBackups",
    encryption=f"{__name__}.age:encryption",
    decryption=f"{__name__}.age:decryption",
    checks=f"{__name__}.checks:backup_checks",
    measure=f"{__name__}.checks:measure_ages",
)
