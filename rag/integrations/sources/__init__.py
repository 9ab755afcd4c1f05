"""Sources, a folder for each service."""
