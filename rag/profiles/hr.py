"""Profile for HR policies and handbooks.

The settings from source 004 in docs/sources.md (`top_k`, …) are the defaults in `parts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag.profiles.profile import WITHOUT_OUR_STEPS, Profile

HR = Profile(
    name="hr",
    title="HR documents",
    description="Company policies and handbooks as PDFs. Questions can be asked in twelve languages.",
)

#: The threshold in the source. The profile uses the embedder's threshold.
SIMILARITY_THRESHOLD = 0.7
#: Settings to follow the source to the letter.
AS_THE_SOURCE: Mapping[str, Any] = {
    **WITHOUT_OUR_STEPS,
    "search_type": "vector",
    "threshold_mode": "absolute",
    "similarity_threshold": SIMILARITY_THRESHOLD,
    "strict_threshold": True,
    "rerank_each_wording": False,
}
