"""Sync a collection with a bucket in S3-compatible storage.

`bucket` reads files, and `form` describes the settings form.
"""

from __future__ import annotations

from rag.integrations.integration import Integration, SourceKind
from rag.language import N_

INTEGRATION = Integration(
    name="s3",
    title=N_("S3-compatible storage"),
    packages=("minio",),
    sources=(SourceKind("s3", makes=f"{__name__}.bucket:source_of", form=f"{__name__}.form:FORM"),),
)
