"""Report automatic backups to `doctor` and `/metrics`."""

from __future__ import annotations

from prometheus_client import Gauge

from rag.integrations.operations.backups.scheduled import ScheduledBackups
from rag.language import _, translated
from rag.monitoring.checks import Check
from rag.services import Services

age = Gauge(
    "hr_backup_age_seconds",
    "With automatic backups: since the last successful backup (backup) and trial restore (trial); +Inf without any.",
    ("kind",),
)


def measure_ages(parts: Services) -> None:
    """Update the gauges for the seconds since the last backup and since the last trial restore."""
    backups = ScheduledBackups(parts.settings)
    if backups.is_on:
        for kind, seconds in backups.ages().items():
            age.labels(kind).set(seconds)


def backup_checks(parts: Services) -> list[Check]:
    """Return checks which tell whether automatic backups are made and can be restored.

    Backups of an external Postgres are unknown here.
    """
    if parts.settings.database_url:
        return []
    backups = ScheduledBackups(parts.settings)
    if not backups.is_on:
        sentence = _("No backup is made automatically: if the server's disk fails, its data is lost.")
        detail = _("Set RAG_BACKUP_TO to a folder on another disk, or to s3://bucket/prefix.")
        return [Check(name=_("Backups"), state="missing", sentence=sentence, detail=detail)]
    if trouble := backups.trouble():
        return [Check(name=_("Backups"), state="warning", sentence=translated(trouble))]
    backup, trial = backups.last()
    assert backup is not None  # noqa: S101  otherwise there is trouble
    sentence = _("The last backup was made on {time} UTC.", time=f"{backup.at:%Y-%m-%d %H:%M}")
    if trial is not None:
        tried = _(
            "On {day}, the backup {name} was restored completely as a test.",
            name=trial.name,
            day=f"{trial.at:%Y-%m-%d}",
        )
        sentence = f"{sentence} {tried}"
    return [Check(name=_("Backups"), state="ok", sentence=sentence)]
