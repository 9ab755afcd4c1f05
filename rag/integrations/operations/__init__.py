"""Connect tools for operators: storage for backups, more database servers."""
