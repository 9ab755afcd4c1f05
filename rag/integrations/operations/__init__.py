"""Tools for operators: automatic backups, and standby database servers."""
