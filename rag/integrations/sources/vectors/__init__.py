"""Import passages from vector stores: `export` reads files, `imports` compares and stores, `commands` starts."""

from __future__ import annotations

from rag.command_line import Commands
from rag.integrations.integration import Integration


def add_commands(commands: Commands) -> None:
    """Add the command `import-vectors`."""
    from rag.integrations.sources.vectors.commands import add_parsers

    add_parsers(commands)


INTEGRATION = Integration(name="vectors", title="Vector stores", add_commands=add_commands)
