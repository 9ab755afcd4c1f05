"""Sources for collections, a folder for each service."""
