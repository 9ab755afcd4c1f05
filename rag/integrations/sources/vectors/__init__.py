"""Import chunks from other vector stores.

`export` reads files, `imports` plans and stores the import, and `commands` is the command.
"""

from __future__ import annotations

from rag.integrations.integration import Integration

INTEGRATION = Integration(name="vectors", title="Vector stores", add_commands=f"{__name__}.commands:add_parsers")
