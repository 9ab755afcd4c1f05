-- Vectors of sentences, kept while a document is cut by topic.

-- find_sentence_vectors --
-- Read the vectors that earlier calls brought.
SELECT vectors FROM sentence_vectors
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s AND digest = %(digest)s

-- keep_sentence_vectors --
-- Store the vectors of one call, in the transaction of its bill.
INSERT INTO sentence_vectors (document_id, digest, tenant_id, vectors)
VALUES (%(document_id)s, %(digest)s, rag_tenant(), %(vectors)s)
ON CONFLICT DO NOTHING

-- forget_sentence_vectors --
-- Remove the vectors once the cut is stored.
DELETE FROM sentence_vectors WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s
