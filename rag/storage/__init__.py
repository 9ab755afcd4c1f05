"""Where everything is kept: Postgres, its migrations and statements, original files, backups."""
