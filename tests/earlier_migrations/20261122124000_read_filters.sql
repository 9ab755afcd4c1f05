-- The filters of lists and figures, each in one place. The planner expands these functions into the statements that use
-- them, so that indexes serve as before; a row is passed whole, so that new columns of its table change nothing here.

CREATE FUNCTION public.rag_is_asked(
    log public.chat_logs, p_kind text, p_start timestamptz, p_end timestamptz, p_document_id uuid, p_user_group text
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN log.kind = p_kind AND log.created_at >= p_start AND log.created_at < p_end
       AND (p_document_id IS NULL OR p_document_id = ANY (log.document_ids))
       AND (p_user_group IS NULL OR log.user_group = p_user_group);
COMMENT ON FUNCTION public.rag_is_asked IS 'Whether a question or search meets the filters of the analytics page.';

-- A paid call belongs to the document it processed or to the question it was made for, asked at most a day before: the
-- bound keeps the filters from reading the whole log.
CREATE FUNCTION public.rag_costs(p_start timestamptz, p_end timestamptz, p_document_id uuid, p_user_group text)
RETURNS TABLE (
    created_at timestamptz, operation text, provider text, model text, cost numeric, input_tokens bigint,
    output_tokens bigint, search_units bigint, pages bigint
) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT c.created_at, c.operation, c.provider, c.model, c.cost, c.input_tokens, c.output_tokens, c.search_units,
           c.pages
    FROM public.cost_ledger c
    WHERE c.created_at >= p_start AND c.created_at < p_end
      AND (p_document_id IS NULL OR c.document_id = p_document_id OR c.chat_log_id IN (
            SELECT l.id FROM public.chat_logs l WHERE p_document_id = ANY (l.document_ids)
            AND l.created_at >= p_start - interval '1 day' AND l.created_at < p_end))
      AND (p_user_group IS NULL OR c.chat_log_id IN (
            SELECT l.id FROM public.chat_logs l WHERE l.user_group = p_user_group
            AND l.created_at >= p_start - interval '1 day' AND l.created_at < p_end));
END;
COMMENT ON FUNCTION public.rag_costs IS 'The paid calls that meet the filters of the analytics page.';

CREATE FUNCTION public.rag_is_listed(
    document public.documents, p_document_ids uuid[], p_collection_id uuid, p_statuses text[], p_language text,
    p_method text, p_mime_type text, p_text text
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN document.status <> 'superseded'
       AND (p_document_ids IS NULL OR document.id = ANY (p_document_ids))
       AND (p_collection_id IS NULL OR document.collection_id = p_collection_id)
       AND (p_statuses IS NULL OR document.status = ANY (p_statuses))
       AND (p_language IS NULL OR document.language = p_language)
       AND (p_method IS NULL OR document.chunking_method = p_method)
       AND (p_mime_type IS NULL OR document.mime_type = p_mime_type)
       AND (p_text IS NULL OR strpos(lower(document.title), p_text) > 0
            OR strpos(lower(document.file_name), p_text) > 0);
COMMENT ON FUNCTION public.rag_is_listed IS 'Whether a document meets the filters of the documents page.';
