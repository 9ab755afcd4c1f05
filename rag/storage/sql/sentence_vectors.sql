-- Vectors of sentences, kept while a document is cut by topic.

-- find_sentence_vectors --
-- What one call has brought
SELECT vectors FROM sentence_vectors
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s AND digest = %(digest)s

-- keep_sentence_vectors --
-- With the bill of their call
INSERT INTO sentence_vectors (document_id, digest, tenant_id, vectors)
VALUES (%(document_id)s, %(digest)s, rag_tenant(), %(vectors)s)
ON CONFLICT DO NOTHING

-- forget_sentence_vectors --
-- The cut is stored: they are of no more use
DELETE FROM sentence_vectors WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s
