"""The filters that a directory sends."""

from __future__ import annotations

from rag.integrations.directory.scim.server import InvalidFilter, parse_filter
from tests.security.target import OF_A_HEAD, Target

TARGETS = {
    "filters of directories": Target(
        parse_filter, (InvalidFilter,), ('userName eq "', "externalId", " eq ", " and ", "(", ")", "[", '"'), OF_A_HEAD
    ),
}
