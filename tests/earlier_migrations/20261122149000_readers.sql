-- Widgets and threads hold readers to their groups like everything else of a collection. A widget's own key finds it
-- before a tenant is known.

CREATE POLICY reader ON widgets AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR key_hash = (SELECT rag_presented())
           OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
CREATE POLICY reader ON chat_threads AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM conversations c WHERE c.id = conversation_id));
