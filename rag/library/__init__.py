"""The administrator's library: collections, documents, versions and the bin."""
