"""Connect what operators use: storage for backups, more database servers."""
