"""The form for this source on the page Collections."""

from __future__ import annotations

from rag.language import N_
from rag.ui.source_forms import Field, SourceForm

FORM = SourceForm(
    kind="s3",
    order=5,
    name=N_("S3-compatible storage"),
    icon=":material/cloud:",
    hint=N_("Amazon S3, MinIO, Cloudflare R2, Ceph and others. Keys that may list and read are enough."),
    fields=(
        Field(name="address", label=N_("Address of the storage"), example="https://s3.amazonaws.com"),
        Field(name="region", label=N_("Region, where it has one"), example="eu-central-1", longest=100),
        Field(name="bucket", label=N_("Bucket"), longest=100),
        Field(name="folder", label=N_("Folder in the bucket; empty for all of it")),
        Field(name="access_key", label=N_("Access key"), is_secret=True),
        Field(name="secret_key", label=N_("Secret key"), is_secret=True),
    ),
    shown=("bucket", "folder"),
)
