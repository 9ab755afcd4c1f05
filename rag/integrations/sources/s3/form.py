"""The settings form for S3-compatible storage, shown on the page Collections."""

from __future__ import annotations

from rag.language import N_
from rag.types.fields import FormField
from rag.ui.source_forms import SourceForm

FORM = SourceForm(
    kind="s3",
    order=5,
    name=N_("S3-compatible storage"),
    icon=":material/cloud:",
    hint=N_(
        "Amazon S3, MinIO, Cloudflare R2, Ceph and others. Keys that have the permissions to list and to read "
        "are enough."
    ),
    fields=(
        FormField(name="address", title=N_("Address of the storage"), example="https://s3.amazonaws.com"),
        FormField(name="region", title=N_("Region, if the storage has one"), example="eu-central-1", maximum=100),
        FormField(name="bucket", title=N_("Bucket"), maximum=100),
        FormField(name="folder", title=N_("Folder in the bucket (leave empty for the whole bucket)")),
        FormField(name="access_key", title=N_("Access key"), is_secret=True),
        FormField(name="secret_key", title=N_("Secret key"), is_secret=True),
    ),
    shown=("bucket", "folder"),
)
