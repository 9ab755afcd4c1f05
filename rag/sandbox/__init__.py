"""Process untrusted files in confined processes, which have no access to files or network."""
