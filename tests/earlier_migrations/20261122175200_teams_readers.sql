-- A bot that asks in one collection holds readers to its groups like everything else of a collection. What a request
-- presents finds it before a tenant is known.

CREATE POLICY reader ON teams_bots AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR key_hash = (SELECT rag_presented()) OR collection_id IS NULL
           OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
