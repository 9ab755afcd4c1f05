"""Store everything: Postgres with its migrations and statements, original files, backups."""
