-- Texts of attachments and vectors of sentences are read with their document, as its pages are.
CREATE POLICY reader ON attachment_texts AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM documents d WHERE d.id = attachment_texts.document_id));
CREATE POLICY reader ON sentence_vectors AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM documents d WHERE d.id = sentence_vectors.document_id));
