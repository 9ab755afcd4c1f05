-- How far a passage may be from a question by its bits to be among the nearest so many: as far as the last of so many
-- among the first few thousand that the scope has, for the nearest of all are no further. Infinitely far where there are
-- not so many. It is a function because a limit within a search's own statement would keep it from parallel workers.
-- Row-level security holds: it runs as its caller.
CREATE FUNCTION public.rag_furthest_bits(
    tenant text, collections uuid[], model text, asked bit, wanted integer, looked_at integer)
    RETURNS double precision
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = public, extensions, pg_temp AS $$
BEGIN
    RETURN coalesce((
        SELECT distance
        FROM (
            SELECT b.bits <~> asked AS distance FROM chunk_bits b
            WHERE b.tenant_id = tenant AND b.collection_id = ANY (collections) AND b.embedding_model = model
              AND b.document_id NOT IN (
                  SELECT d.id FROM documents d
                  WHERE d.tenant_id = tenant AND d.collection_id = ANY (collections) AND d.status <> 'completed')
            LIMIT looked_at
        ) AS first
        ORDER BY distance OFFSET wanted - 1 LIMIT 1
    ), 'Infinity');
END
$$;

SELECT rag_close_rest_api();
