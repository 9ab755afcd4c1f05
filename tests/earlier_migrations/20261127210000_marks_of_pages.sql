-- What places on a page were read as; null on pages that were read before, or whose reader does not know the places.
ALTER TABLE document_pages ADD COLUMN marks jsonb;
