-- Documents, what was read of them, and what administrators keep beside them.

-- A version of a document is a row with its own pages and chunks; only completed rows are searched. Publishing the next
-- version changes two states in one transaction.
CREATE TABLE documents (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    title text NOT NULL,
    file_name text NOT NULL,
    file_path text NOT NULL DEFAULT '',
    file_size bigint NOT NULL DEFAULT 0,
    mime_type text NOT NULL DEFAULT 'application/pdf',
    sha256 text NOT NULL,
    status text NOT NULL DEFAULT 'processing'
        CHECK (status IN ('registered', 'reading', 'estimated', 'processing', 'completed', 'needs_ocr', 'failed',
                          'superseded', 'binned')),
    step text NOT NULL DEFAULT 'extract'
        CHECK (step IN ('extract', 'recognise', 'chunk', 'embed', 'tag', 'publish')),
    steps_done integer NOT NULL DEFAULT 0,
    steps_total integer NOT NULL DEFAULT 0,
    message text NOT NULL DEFAULT '',
    page_count integer NOT NULL DEFAULT 0,
    empty_pages integer[] NOT NULL DEFAULT '{}',
    character_count bigint NOT NULL DEFAULT 0,
    chunk_count integer NOT NULL DEFAULT 0,
    language text NOT NULL DEFAULT '',
    chunking_method text NOT NULL DEFAULT 'smart',
    generate_metadata boolean NOT NULL DEFAULT true,
    estimate jsonb,
    costs jsonb NOT NULL DEFAULT '{}',
    processing_ms bigint NOT NULL DEFAULT 0,
    metadata jsonb NOT NULL DEFAULT '{}',
    added_by uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- The id of the first version, which all versions of one document share.
    original_id uuid NOT NULL,
    version integer NOT NULL DEFAULT 1 CHECK (version > 0),
    -- When it was last asked for, by upload, by hand or by being restored: of two at work the later one wins.
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    published_at timestamptz,
    superseded_at timestamptz,
    -- Steps asked for by hand that are done while the document goes on answering: tag.
    pending_steps text[] NOT NULL DEFAULT '{}',
    -- How often work began without an orderly end since it last came further; too often, and it is quarantined.
    starts integer NOT NULL DEFAULT 0,
    -- Paid calls sent again after a kill: a provider without idempotency keys may have billed each of them twice.
    repeated_calls integer NOT NULL DEFAULT 0,
    -- scanned: text is recognised on every page; digital: on none; auto: on pages that show something and have no text.
    pdf_type text NOT NULL DEFAULT 'auto' CHECK (pdf_type IN ('scanned', 'digital', 'auto')),
    -- Pages whose text is still to be recognised: each leaves in the transaction that stores its text and its bill.
    ocr_pages integer[] NOT NULL DEFAULT '{}',
    -- Documents that a source keeps: what it calls them. They need nobody's yes to their cost; the sync was asked for.
    sync_key text,
    -- A document whose provider refuses the key or has no money left: it goes on by itself, and `message` says
    -- why it waits.
    is_waiting boolean NOT NULL DEFAULT false,
    -- What people write about a document holds for all its versions: they are changed together, and a new one takes it over.
    folder text NOT NULL DEFAULT '' CHECK (length(folder) <= 200),
    tags text[] NOT NULL DEFAULT '{}' CHECK (cardinality(tags) <= 20),
    owner_id uuid,
    -- The first and the last day are those of a version: a new file of a document begins without them.
    valid_from date,
    valid_until date,
    -- When its owner is to look at it again.
    review_on date,
    -- The language an administrator gave it, which reading does not replace.
    corrected_language text NOT NULL DEFAULT '',
    -- Processed without being asked about up to this estimate in US dollars; null: always asked about.
    confirmed_up_to numeric(14, 8),
    -- The bin keeps deleted documents for thirty days.
    binned_at timestamptz,
    binned_by uuid,
    -- Its status before it came into the bin.
    status_before text,
    -- Two files of one name in different folders of an archive are two documents: where a file lay in its batch is part of
    -- what it is recognised by when it comes again.
    upload_folder text NOT NULL DEFAULT '',
    -- Made by correcting a page: passages that stay as they are keep their vectors and tags.
    is_correction boolean NOT NULL DEFAULT false,
    -- Documents with a sample's content that people added are not deleted with the samples.
    is_sample boolean NOT NULL DEFAULT false,
    CONSTRAINT documents_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT documents_added_by_fkey FOREIGN KEY (added_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (added_by),
    CONSTRAINT documents_owner_id_fkey FOREIGN KEY (owner_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (owner_id),
    CONSTRAINT documents_binned_by_fkey FOREIGN KEY (binned_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (binned_by),
    CONSTRAINT valid_from_is_first CHECK (valid_from <= valid_until),
    -- Searches read documents that are completed, so that none of them finds what is in the bin.
    CONSTRAINT bin_is_dated CHECK ((status = 'binned') = (binned_at IS NOT NULL)
                                   AND (status = 'binned') = (status_before IS NOT NULL)),
    CONSTRAINT documents_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON documents (tenant_id, status);
CREATE INDEX ON documents (collection_id);
-- A scope's documents that must not be found yet are few: read without a scan.
CREATE INDEX documents_unfinished ON documents (tenant_id, collection_id) WHERE status <> 'completed';
-- The same bytes again are a version only when they are processed in another way. The bin is not in the way of an upload
-- with the same content.
CREATE UNIQUE INDEX documents_content ON documents (tenant_id, collection_id, sha256, version) WHERE status <> 'binned';
-- At most one version of a document is completed.
CREATE UNIQUE INDEX documents_current ON documents (original_id) WHERE status = 'completed';
CREATE INDEX documents_versions ON documents (original_id, version);
CREATE INDEX documents_file_path ON documents (tenant_id, file_path);
CREATE INDEX documents_synced ON documents (collection_id, sync_key) WHERE sync_key IS NOT NULL;
-- Questions to suggest come from the newest documents that have any.
CREATE INDEX documents_suggesting ON documents (tenant_id, collection_id, created_at DESC, id)
    WHERE status = 'completed' AND metadata ?| '{questions,suggested_questions}';
-- Followed once a second while somebody looks.
CREATE INDEX documents_at_work ON documents (tenant_id)
    WHERE status IN ('reading', 'processing') OR pending_steps <> '{}';
-- Lists to choose from begin with the newest documents.
CREATE INDEX documents_newest ON documents (tenant_id, created_at DESC, id);
CREATE INDEX documents_binned ON documents (tenant_id, binned_at) WHERE status = 'binned';
CREATE INDEX documents_owned ON documents (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX documents_binned_by ON documents (binned_by) WHERE binned_by IS NOT NULL;
-- What an item of a source has at its source, where more is stored of it, such as a repository's README.
CREATE INDEX documents_content_hash ON documents (collection_id, (metadata ->> 'contentHash')) WHERE metadata ? 'contentHash';
COMMENT ON COLUMN documents.upload_folder IS
    'Folders of the file within its archive or folder, without those that all of its files share; empty for a single file.';
COMMENT ON COLUMN documents.is_sample IS 'Added as a sample by the product, or processed anew from such a file.';

-- Rows that name no more than the HR document's tables have: a document of a tenant with its file's name, a chunk of a
-- document with its text. What our tables have beyond them is filled in, so that its statements work as written.
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

-- A new version takes over what people wrote about the document. Its first and last day it takes over with the same
-- content alone: a new file begins without them.
CREATE FUNCTION public.name_first_version() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    earlier public.documents;
BEGIN
    NEW.original_id := coalesce(NEW.original_id, NEW.id);
    IF NEW.original_id <> NEW.id THEN
        SELECT * INTO earlier FROM public.documents d
        WHERE d.tenant_id = NEW.tenant_id AND d.original_id = NEW.original_id
        ORDER BY d.version DESC LIMIT 1;
        IF FOUND THEN
            NEW.folder := earlier.folder;
            NEW.tags := earlier.tags;
            NEW.owner_id := earlier.owner_id;
            IF NEW.sha256 = earlier.sha256 THEN
                NEW.valid_from := earlier.valid_from;
                NEW.valid_until := earlier.valid_until;
            END IF;
            NEW.review_on := earlier.review_on;
            NEW.corrected_language := earlier.corrected_language;
            IF earlier.metadata @> '{"is_named": true}' THEN
                NEW.title := earlier.title;
                NEW.metadata := NEW.metadata || '{"is_named": true}';
            END IF;
        END IF;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER name_first_version BEFORE INSERT ON documents FOR EACH ROW EXECUTE FUNCTION name_first_version();

-- The versions of each document, for readers of the database itself.
CREATE VIEW document_versions WITH (security_invoker = true) AS
SELECT original_id, version, id AS document_id, tenant_id, collection_id, title, file_name, sha256, status,
       chunking_method, chunk_count, page_count, created_at, published_at, superseded_at
FROM documents;

-- The filters of the documents page. The planner expands the function into the statements that use it, so that indexes serve
-- them; a row is passed whole, so that new columns of its table change nothing here.
CREATE FUNCTION public.rag_is_listed(
    document public.documents, p_document_ids uuid[], p_collection_id uuid, p_statuses text[], p_language text,
    p_method text, p_mime_type text, p_text text, p_found_ids uuid[], p_folder text, p_tag text, p_owner_id uuid,
    p_due text
) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
    RETURN document.status <> 'superseded'
       AND (document.status <> 'binned' OR 'binned' = ANY (p_statuses))
       AND (p_document_ids IS NULL OR document.id = ANY (p_document_ids))
       AND (p_collection_id IS NULL OR document.collection_id = p_collection_id)
       AND (p_statuses IS NULL OR document.status = ANY (p_statuses))
       AND (p_language IS NULL OR document.language = p_language)
       AND (p_method IS NULL OR document.chunking_method = p_method)
       AND (p_mime_type IS NULL OR document.mime_type = p_mime_type)
       AND (p_text IS NULL OR strpos(lower(document.title), p_text) > 0
            OR strpos(lower(document.file_name), p_text) > 0 OR document.id = ANY (p_found_ids))
       -- A folder holds what is in the folders within it.
       AND (p_folder IS NULL OR document.folder = p_folder OR starts_with(document.folder, p_folder || '/'))
       AND (p_tag IS NULL OR p_tag = ANY (document.tags))
       AND (p_owner_id IS NULL OR document.owner_id = p_owner_id)
       AND (p_due IS NULL
            OR p_due = 'expired' AND document.valid_until < current_date
            OR p_due = 'review' AND document.review_on <= current_date);
COMMENT ON FUNCTION public.rag_is_listed IS 'Whether a document meets the filters of the documents page.';

-- The day of a moment in a document's metadata: ISO text, or milliseconds since 1970, which notice boards write. The
-- day of a notice is a Korean one: midnight in Seoul is still the day before in Greenwich.
CREATE FUNCTION public.metadata_day(moment jsonb) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE jsonb_typeof(moment)
        WHEN 'number' THEN CASE WHEN moment::numeric > 0
            THEN to_char(to_timestamp(moment::numeric::float8 / 1000) AT TIME ZONE 'Asia/Seoul', 'YYYY-MM-DD') END
        WHEN 'string' THEN substring(moment #>> '{}' FROM '^\d{4}-\d{2}-\d{2}')
    END;

-- The text of each page, with how it was read.
CREATE TABLE document_pages (
    document_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    text text NOT NULL,
    characters integer NOT NULL,
    method text NOT NULL CHECK (method IN ('text', 'ocr', 'none')),
    language text NOT NULL DEFAULT '',
    label text NOT NULL DEFAULT '',
    warnings text[] NOT NULL DEFAULT '{}',
    -- What places on the page were read as; null where its reader does not know the places.
    marks jsonb,
    read_text text,
    PRIMARY KEY (document_id, number),
    CONSTRAINT document_pages_document_id_fkey FOREIGN KEY (document_id, tenant_id)
        REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON document_pages (tenant_id);
COMMENT ON COLUMN document_pages.read_text IS 'What a corrected page was read as; null: `text` is that.';

-- Texts that administrators gave to pages, of all versions of a document. Rows are added and never changed: what is taken
-- back is a row without a text.
CREATE TABLE page_corrections (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    original_id uuid NOT NULL,
    page integer NOT NULL CHECK (page > 0),
    -- Title and page, for the audit log.
    place text NOT NULL,
    -- The fingerprint of the page as it was read: the correction holds for pages that are read so.
    read_hash text NOT NULL,
    text_before text NOT NULL,
    text_after text,
    -- The correction that this one takes the place of.
    follows uuid,
    corrected_by uuid,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (id, tenant_id),
    CONSTRAINT page_corrections_follows UNIQUE (follows),
    CONSTRAINT page_corrections_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT page_corrections_follows_fkey FOREIGN KEY (follows, tenant_id)
        REFERENCES page_corrections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT page_corrections_corrected_by_fkey FOREIGN KEY (corrected_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (corrected_by)
);
CREATE INDEX ON page_corrections (tenant_id, original_id);
CREATE INDEX ON page_corrections (collection_id);
CREATE INDEX ON page_corrections (corrected_by) WHERE corrected_by IS NOT NULL;
COMMENT ON TABLE page_corrections IS 'Texts that administrators gave to pages, and what was there before.';

-- Corrections go with the last version of their document.
CREATE FUNCTION public.forget_corrections() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM public.page_corrections c
    WHERE c.tenant_id = OLD.tenant_id AND c.original_id = OLD.original_id AND NOT EXISTS (
        SELECT FROM public.documents d WHERE d.tenant_id = OLD.tenant_id AND d.original_id = OLD.original_id);
    RETURN NULL;
END
$$;
CREATE TRIGGER forget_corrections AFTER DELETE ON documents FOR EACH ROW EXECUTE FUNCTION forget_corrections();

-- A model's description of an attachment, by the attachment's content: the next version of its post does not ask again.
CREATE TABLE attachment_texts (
    document_id uuid NOT NULL,
    sha256 text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    kind text NOT NULL,
    text text NOT NULL,
    note text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (document_id, sha256),
    CONSTRAINT attachment_texts_document_id_fkey FOREIGN KEY (document_id, tenant_id)
        REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON attachment_texts (tenant_id);

-- Vectors of sentences that a cut by topic has paid for. They are kept from the answer until the cut is stored, so that
-- a killed process asks for none of them twice; a document that is deleted takes them with it.
CREATE TABLE sentence_vectors (
    document_id uuid NOT NULL,
    -- Of the model and the texts of one call.
    digest text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- The rows one after the other, float32, little-endian: the cut is the same only when no bit of them is lost.
    vectors bytea NOT NULL,
    PRIMARY KEY (document_id, digest),
    CONSTRAINT sentence_vectors_document_id_fkey FOREIGN KEY (document_id, tenant_id)
        REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON sentence_vectors (tenant_id);

-- Passages of documents, with their vectors.
--
-- What a search reads is kept in sixteen parts by a hash of the tenant: vacuum, the making of an index and what is held in
-- memory stay as small as the part, and a search reads one. Every statement names its tenant, by which Postgres finds it.
-- So a key holds the tenant. What is unique without it stays so: a document has one tenant, and ids are drawn at random.
--
-- The vector is a halfvec kept in the row (STORAGE PLAIN) so that an exact scan reads no TOAST; the text, being the
-- largest other column, moves out of the row by itself. Measured: 3 times faster than vector with its default storage.
CREATE TABLE document_chunks (
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    document_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    content text NOT NULL,
    embedding extensions.halfvec,
    chunk_index integer NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    embedding_model text NOT NULL DEFAULT '',
    first_page integer NOT NULL DEFAULT 1,
    last_page integer NOT NULL DEFAULT 1,
    start_character integer NOT NULL DEFAULT 0,
    end_character integer NOT NULL DEFAULT 0,
    section text NOT NULL DEFAULT '',
    tokens integer NOT NULL DEFAULT 0,
    PRIMARY KEY (id, tenant_id),
    UNIQUE (document_id, chunk_index, tenant_id),
    CONSTRAINT document_chunks_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT document_chunks_document_id_fkey FOREIGN KEY (document_id, tenant_id)
        REFERENCES documents (id, tenant_id) ON DELETE CASCADE
) PARTITION BY HASH (tenant_id);
-- Rows with a vector are longer than 2 KB, so Postgres moves every other value of 24 bytes and more out of them. What a
-- scan compares would be read from TOAST for each row.
ALTER TABLE document_chunks ALTER tenant_id SET STORAGE PLAIN, ALTER embedding SET STORAGE PLAIN,
    ALTER embedding_model SET STORAGE PLAIN;
CREATE INDEX document_chunks_scope ON document_chunks (tenant_id, collection_id);

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

-- Embedding a collection again with another model: estimated, running beside the old vectors, switched.
CREATE TABLE reembeddings (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    from_model text NOT NULL,
    to_model text NOT NULL,
    status text NOT NULL DEFAULT 'estimated'
        CHECK (status IN ('estimated', 'running', 'failed', 'switched', 'cancelled')),
    chunks_done integer NOT NULL DEFAULT 0,
    chunks_total integer NOT NULL DEFAULT 0,
    estimated_tokens bigint NOT NULL DEFAULT 0,
    -- Null: no price is known.
    estimated_cost numeric(14, 8),
    message text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    switched_at timestamptz,
    -- When the vectors of from_model were removed; until then it can be undone.
    cleaned_at timestamptz,
    CONSTRAINT reembeddings_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX reembeddings_one_at_a_time ON reembeddings (collection_id)
    WHERE status IN ('estimated', 'running', 'failed');
CREATE INDEX ON reembeddings (tenant_id, collection_id);

-- Originals of documents that are gone: removed by a job that tries until it works.
CREATE TABLE file_removals (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    file_path text NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    last_error text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, file_path)
);

-- Filters of the documents page that a person gave a name.
CREATE TABLE saved_views (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    name text NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
    filters jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (account_id, name),
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON saved_views (tenant_id);

-- Files that were not accepted, until somebody has seen why.
CREATE TABLE refused_files (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    file_name text NOT NULL,
    file_size bigint NOT NULL DEFAULT 0,
    reason text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON refused_files (tenant_id, account_id, created_at);
CREATE INDEX ON refused_files (account_id);
