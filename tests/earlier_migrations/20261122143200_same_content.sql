-- What an item of a source has at its source, where more is stored of it, such as a repository's README.
CREATE INDEX documents_content_hash ON documents (collection_id, (metadata ->> 'contentHash')) WHERE metadata ? 'contentHash';
