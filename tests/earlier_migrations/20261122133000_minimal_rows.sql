-- Rows that name no more than the HR document's tables have: a document of a tenant with its file's name, a chunk of a
-- document with its text. What our tables have beyond them is filled in here, so that its statements work as written.

CREATE FUNCTION public.fill_minimal_document() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.title := coalesce(NEW.title, regexp_replace(NEW.file_name, '\.[^.]*$', ''));
    -- Of the content nothing is known: no two such rows are the same file.
    NEW.sha256 := coalesce(NEW.sha256, 'unknown:' || NEW.id);
    IF NEW.collection_id IS NULL THEN
        SELECT c.id INTO NEW.collection_id FROM public.collections c WHERE c.tenant_id = NEW.tenant_id
        ORDER BY (c.profile = 'hr') DESC, c.created_at, c.id LIMIT 1;
        IF NEW.collection_id IS NULL THEN
            RAISE EXCEPTION 'Tenant % has no collection for this document.', NEW.tenant_id
                USING HINT = 'Make one first: python -m rag collection create "HR documents"';
        END IF;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER fill_minimal_document BEFORE INSERT ON documents FOR EACH ROW
    WHEN (NEW.title IS NULL OR NEW.sha256 IS NULL OR NEW.collection_id IS NULL)
    EXECUTE FUNCTION fill_minimal_document();

CREATE FUNCTION public.fill_minimal_chunk() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT d.collection_id INTO NEW.collection_id FROM public.documents d
    WHERE d.id = NEW.document_id AND d.tenant_id = NEW.tenant_id;
    RETURN NEW;
END
$$;
CREATE TRIGGER fill_minimal_chunk BEFORE INSERT ON document_chunks FOR EACH ROW
    WHEN (NEW.collection_id IS NULL) EXECUTE FUNCTION fill_minimal_chunk();

-- `python -m rag psql` signs in to the built-in server as this role. It reads what its sealed identity lets it read, and
-- nothing by which somebody signs in. Elsewhere the owner of the tables asks, by rag_enter.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rag_reader') THEN
        GRANT USAGE ON SCHEMA public, extensions TO rag_reader;
        GRANT SELECT ON tenants, collections, documents, document_pages, document_chunks, conversations, messages,
            chat_logs, feedback, cost_ledger, sync_runs, sync_items TO rag_reader;
        GRANT EXECUTE ON FUNCTION public.rag_verified(text), public.rag_tenant(), public.rag_reads_all(),
            public.rag_group(), public.match_document_chunks TO rag_reader;
    END IF;
END
$$;
