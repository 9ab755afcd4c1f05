"""Process untrusted files in confined processes without access to files or network."""
