"""Store the product's data: Postgres with migrations and statements, original files, backups."""
