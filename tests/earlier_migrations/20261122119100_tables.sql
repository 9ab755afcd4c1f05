-- Tables and their indexes by subject. Every table with a tenant's data has tenant_id, and a reference between two such
-- tables includes it, so that a row of one tenant cannot point at a row of another.

-- Tenants, people and programs

CREATE TABLE tenants (
    id text PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    name text NOT NULL,
    settings jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    suspended_at timestamptz
);
COMMENT ON COLUMN tenants.suspended_at IS 'Since when nobody of the tenant may sign in and nothing is processed.';

CREATE TABLE accounts (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    email text NOT NULL CHECK (email = lower(email)),
    name text NOT NULL DEFAULT '',
    role text NOT NULL CHECK (role IN ('employee', 'manager', 'admin')),
    user_group text NOT NULL DEFAULT '',
    password_hash text NOT NULL,
    is_active boolean NOT NULL DEFAULT true,
    failed_attempts integer NOT NULL DEFAULT 0,
    last_failed_at timestamptz,
    last_signed_in_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    password_asked_at timestamptz,
    last_collection_id uuid,
    waiting_browsers jsonb NOT NULL DEFAULT '[]',
    CONSTRAINT accounts_email_of_tenant UNIQUE (tenant_id, email),
    CONSTRAINT accounts_of_tenant UNIQUE (id, tenant_id)
);
CREATE INDEX ON accounts (tenant_id);
CREATE INDEX accounts_email ON accounts (email);
COMMENT ON COLUMN accounts.password_asked_at IS 'Since when somebody waits for a link to a new password; null: nobody.';
COMMENT ON COLUMN accounts.last_collection_id IS
    'The collection of the last question; null: none yet, or it is deleted.';
COMMENT ON COLUMN accounts.waiting_browsers IS 'Unknown browsers that wait for their turn at the password, as hashes.';

CREATE TABLE sessions (
    token_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    user_agent text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- When the person last proved who they are: as the session began, before that at a provider, or when they were
    -- asked again. Null: as it began.
    proved_at timestamptz,
    CONSTRAINT sessions_of_tenant UNIQUE (token_hash, tenant_id),
    CONSTRAINT sessions_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON sessions (account_id);
CREATE INDEX ON sessions (tenant_id);

-- Links that work once: the first administrator's, invitations.
CREATE TABLE one_time_links (
    token_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    purpose text NOT NULL CHECK (purpose IN ('first_admin', 'set_password', 'second_factor')),
    account_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    used_at timestamptz,
    CONSTRAINT one_time_links_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON one_time_links (tenant_id);

-- Browsers in which somebody has signed in, by the hash of a token they keep. A known browser's wrong passwords count
-- apart, so that strangers keep nobody out; unknown browsers take turns.
CREATE TABLE known_browsers (
    token_hash bytea NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    -- Wrong passwords in this browser since the last right one.
    failed_attempts integer NOT NULL DEFAULT 0,
    last_failed_at timestamptz,
    last_used_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (token_hash, account_id),
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON known_browsers (account_id, tenant_id);
CREATE INDEX ON known_browsers (tenant_id);
COMMENT ON TABLE known_browsers IS 'Browsers in which an account has signed in; their wrong passwords count apart.';

-- A second factor beside the password: codes of an authenticator app (TOTP, RFC 6238), and recovery codes for a lost
-- telephone. tenants.settings says which roles need one.
CREATE TABLE second_factors (
    account_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Encrypted with the key that seals identities, which this role cannot read.
    secret bytea NOT NULL,
    -- When a code of it was right for the first time; null: not in use yet.
    confirmed_at timestamptz,
    -- The half minute of the last code: none works twice.
    last_step bigint NOT NULL DEFAULT 0,
    failed_attempts integer NOT NULL DEFAULT 0,
    last_failed_at timestamptz,
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON second_factors (tenant_id);

CREATE TABLE recovery_codes (
    account_id uuid NOT NULL,
    code_hash bytea NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    used_at timestamptz,
    PRIMARY KEY (account_id, code_hash),
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON recovery_codes (tenant_id);

-- The accounts of people who sign in at another service. The hash covers the service and its name for the person.
CREATE TABLE external_identities (
    subject_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid NOT NULL,
    issuer text NOT NULL,
    subject text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (account_id, issuer),
    CONSTRAINT external_identities_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON external_identities (tenant_id);

-- Sessions that began at another service: found again by its sign-out messages, and checked there from time to time.
CREATE TABLE session_origins (
    token_hash bytea PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    issuer text NOT NULL,
    subject_hash bytea NOT NULL,
    -- Of the other service's session, where it names one.
    session_hash bytea,
    -- The token for the next check at the other service, encrypted.
    secret bytea,
    -- When to check again; null: never.
    check_after timestamptz,
    CONSTRAINT session_origins_token_hash_fkey FOREIGN KEY (token_hash, tenant_id)
        REFERENCES sessions (token_hash, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON session_origins (tenant_id);
CREATE INDEX ON session_origins (subject_hash);
CREATE INDEX ON session_origins (session_hash);

-- Keys by which programs call the API for a tenant. Only the hash of a key's secret is kept.
CREATE TABLE api_keys (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    secret_hash bytea NOT NULL UNIQUE,
    -- The first characters of the secret, by which a person recognises it.
    hint text NOT NULL,
    scopes text[] NOT NULL CHECK (cardinality(scopes) > 0),
    requests_per_minute integer NOT NULL DEFAULT 120 CHECK (requests_per_minute BETWEEN 1 AND 100000),
    created_by uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL DEFAULT now() + interval '90 days',
    revoked_at timestamptz,
    last_used_at timestamptz,
    -- The minute that is being counted, and its requests: right for all processes, because it is one row.
    minute_started_at timestamptz,
    minute_requests integer NOT NULL DEFAULT 0,
    last_collection_id uuid,
    -- Made by the operator on the command line; it belongs to no person.
    is_operators boolean NOT NULL DEFAULT false,
    CONSTRAINT api_keys_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT api_keys_created_by_fkey FOREIGN KEY (created_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (created_by)
) WITH (fillfactor = 50);
CREATE INDEX ON api_keys (tenant_id);
COMMENT ON COLUMN api_keys.created_by IS
    'Its owner: the key works while they are an active administrator. Null: of the operator, or of somebody deleted.';
COMMENT ON COLUMN api_keys.last_collection_id IS 'As of accounts.';

-- Collections and documents

CREATE TABLE collections (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name text NOT NULL,
    profile text NOT NULL DEFAULT 'hr',
    embedding_model text NOT NULL,
    language text NOT NULL DEFAULT 'en',
    overrides jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    calibrated_threshold double precision
        CHECK (calibrated_threshold BETWEEN -1 AND 1),
    calibrated_at timestamptz,
    calibrated_model text,
    calibrated_passages integer CHECK (calibrated_passages > 0),
    -- Groups whose people may read it; empty: everybody of the tenant.
    groups text[] NOT NULL DEFAULT '{}',
    CONSTRAINT collections_of_tenant UNIQUE (id, tenant_id),
    UNIQUE (tenant_id, name)
);
ALTER TABLE accounts ADD FOREIGN KEY (last_collection_id, tenant_id)
    REFERENCES collections (id, tenant_id) ON DELETE SET NULL (last_collection_id);
ALTER TABLE api_keys ADD FOREIGN KEY (last_collection_id, tenant_id)
    REFERENCES collections (id, tenant_id) ON DELETE SET NULL (last_collection_id);

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
                          'superseded')),
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
    CONSTRAINT documents_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT documents_added_by_fkey FOREIGN KEY (added_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (added_by),
    CONSTRAINT documents_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON documents (tenant_id, status);
CREATE INDEX ON documents (collection_id);
-- A scope's documents that must not be found yet are few: read without a scan.
CREATE INDEX documents_unfinished ON documents (tenant_id, collection_id) WHERE status <> 'completed';
-- The same bytes again are a version only when they are processed in another way.
CREATE UNIQUE INDEX documents_content ON documents (tenant_id, collection_id, sha256, version);
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
    PRIMARY KEY (document_id, number),
    CONSTRAINT document_pages_document_id_fkey FOREIGN KEY (document_id, tenant_id)
        REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON document_pages (tenant_id);

-- The vector is a halfvec kept in the row (STORAGE PLAIN) so that an exact scan reads no TOAST; the text, being the
-- largest other column, moves out of the row by itself. Measured: 3 times faster than vector with its default storage.
CREATE TABLE document_chunks (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
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
    CONSTRAINT document_chunks_of_tenant UNIQUE (id, tenant_id),
    UNIQUE (document_id, chunk_index),
    CONSTRAINT document_chunks_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT document_chunks_document_id_fkey FOREIGN KEY (document_id, tenant_id)
        REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
-- Rows with a vector are longer than 2 KB, so Postgres moves every other value of 24 bytes and more out of them. What a
-- scan compares would be read from TOAST for each row.
ALTER TABLE document_chunks ALTER COLUMN tenant_id SET STORAGE PLAIN;
ALTER TABLE document_chunks ALTER COLUMN embedding SET STORAGE PLAIN;
ALTER TABLE document_chunks ALTER COLUMN embedding_model SET STORAGE PLAIN;
CREATE INDEX document_chunks_scope ON document_chunks (tenant_id, collection_id);

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

-- Vectors of a model that is not, or no longer, the collection's. Searches never look here.
CREATE TABLE spare_vectors (
    chunk_id uuid NOT NULL,
    embedding_model text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    embedding extensions.halfvec NOT NULL,
    PRIMARY KEY (chunk_id, embedding_model),
    CONSTRAINT spare_vectors_chunk_id_fkey FOREIGN KEY (chunk_id, tenant_id)
        REFERENCES document_chunks (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT spare_vectors_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
ALTER TABLE spare_vectors ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX ON spare_vectors (tenant_id, collection_id, embedding_model);

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

-- Sources that collections follow

-- Where a collection's documents come from; no secret is kept here, addresses of databases are settings.
CREATE TABLE collection_sources (
    collection_id uuid NOT NULL,
    kind text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    settings jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (collection_id, kind),
    CONSTRAINT collection_sources_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON collection_sources (tenant_id);

-- The state of each item of a source. A deleted item keeps its row, so that an earlier event that arrives late cannot
-- bring it back.
CREATE TABLE sync_items (
    collection_id uuid NOT NULL,
    kind text NOT NULL,
    key text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- The first version of its document; null where there is none.
    original_id uuid,
    source_updated_at timestamptz,
    hash text NOT NULL DEFAULT '',
    title text NOT NULL DEFAULT '',
    is_deleted boolean NOT NULL DEFAULT false,
    -- Why it could not be read the last time.
    problem text NOT NULL DEFAULT '',
    -- The newest event that is not processed yet: type and record as the source sent them.
    event jsonb,
    event_at timestamptz,
    synced_at timestamptz,
    PRIMARY KEY (collection_id, kind, key),
    CONSTRAINT sync_items_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON sync_items (tenant_id);
CREATE INDEX sync_items_waiting ON sync_items (collection_id, kind) WHERE event IS NOT NULL;

-- Each reading of a source with its result.
CREATE TABLE sync_runs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    collection_id uuid NOT NULL,
    kind text NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    status text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'running', 'done', 'failed')),
    items_done integer NOT NULL DEFAULT 0,
    items_total integer NOT NULL DEFAULT 0,
    added integer NOT NULL DEFAULT 0,
    updated integer NOT NULL DEFAULT 0,
    unchanged integer NOT NULL DEFAULT 0,
    removed integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    message text NOT NULL DEFAULT '',
    asked_by text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz,
    CONSTRAINT sync_runs_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON sync_runs (tenant_id, collection_id, created_at DESC);
-- Asked for twice, it is done once.
CREATE UNIQUE INDEX sync_runs_waiting ON sync_runs (collection_id, kind) WHERE status = 'waiting';

-- The search index

-- The terms of a passage in their order, four bytes each: they refine the order of the best hits without analysing
-- their texts again.
CREATE TABLE chunk_terms (
    chunk_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    terms bytea NOT NULL,
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
ALTER TABLE chunk_terms ALTER COLUMN terms SET STORAGE EXTERNAL;
CREATE INDEX chunk_terms_document ON chunk_terms (document_id);
CREATE INDEX chunk_terms_tenant ON chunk_terms (tenant_id);

-- The sign of each dimension, of published passages and of embedders whose vectors are dense: 16 times smaller than the
-- vectors, so that a collection too large for an exact scan is scanned here, and the nearest 400 are compared exactly.
CREATE TABLE chunk_bits (
    chunk_id uuid PRIMARY KEY,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    embedding_model text NOT NULL,
    bits bit varying NOT NULL,
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
ALTER TABLE chunk_bits ALTER COLUMN bits SET STORAGE PLAIN;
CREATE INDEX chunk_bits_scope ON chunk_bits (tenant_id, collection_id);
CREATE INDEX chunk_bits_document ON chunk_bits (document_id);

-- How many passages and terms a collection's index holds, by the language they were analysed in.
CREATE TABLE keyword_totals (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    chunks bigint NOT NULL,
    tokens bigint NOT NULL,
    -- Which analysers a collection's documents were indexed with is part of the totals.
    language text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant_id, collection_id, language),
    CONSTRAINT keyword_totals_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);

-- Keywords as packed postings: a search reads the postings of its own terms instead of every passage, and counts the
-- passages of a term by reading them, so that no counter changes when a document comes or goes.

-- A document in the keyword index. Its passages have consecutive numbers, given out by the collection.
CREATE TABLE keyword_documents (
    document_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    -- Of the analyser: ISO 639-1.
    language text NOT NULL,
    first_passage integer NOT NULL,
    -- Terms in all its passages.
    tokens bigint NOT NULL,
    -- In the order of their numbers.
    chunk_ids uuid[] NOT NULL,
    CONSTRAINT keyword_documents_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX keyword_documents_passages ON keyword_documents (collection_id, first_passage);

-- The next number of a passage. Numbers are never used twice.
CREATE TABLE keyword_numbers (
    collection_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    next_passage integer NOT NULL,
    CONSTRAINT keyword_numbers_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);

-- A segment holds all postings of one or more documents and never changes: segments of like size are written together
-- into a larger one. Its passages lie between the two numbers.
CREATE TABLE keyword_segments (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    first_passage integer NOT NULL,
    last_passage integer NOT NULL,
    postings bigint NOT NULL,
    CONSTRAINT keyword_segments_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT keyword_segments_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX keyword_segments_scope ON keyword_segments (tenant_id, collection_id);

-- The terms of a segment in their order, as many to a block as fill about a quarter of a page; a term is in one block
-- only, whatever its size. Integers of four bytes, highest byte first: how many terms; the terms; where each one's
-- postings end; the postings, each the number of a passage and its length * 65536 + the term's frequency in it.
CREATE TABLE keyword_blocks (
    segment_id bigint NOT NULL,
    first_term integer NOT NULL,
    collection_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    data bytea NOT NULL,
    PRIMARY KEY (segment_id, first_term),
    CONSTRAINT keyword_blocks_segment_id_fkey FOREIGN KEY (segment_id, tenant_id)
        REFERENCES keyword_segments (id, tenant_id) ON DELETE CASCADE
);
ALTER TABLE keyword_blocks ALTER COLUMN data SET STORAGE EXTERNAL;

-- Passages of removed documents whose postings are still in a segment. Rewriting the segment leaves them out and
-- removes the row.
CREATE TABLE keyword_tombstones (
    collection_id uuid NOT NULL,
    first_passage integer NOT NULL,
    passages integer NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    PRIMARY KEY (collection_id, first_passage),
    CONSTRAINT keyword_tombstones_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);

-- Vectors of meaning, made in the background for passages of collections on the built-in embedder, beside its vectors
-- of words. A search uses the ones that exist.
CREATE TABLE meaning_vectors (
    chunk_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    -- Of the document: similarities are compared within one language.
    language text NOT NULL,
    -- Null: the model cannot read this text, and is not asked again.
    embedding extensions.halfvec(384),
    UNIQUE (chunk_id, tenant_id),
    FOREIGN KEY (chunk_id, tenant_id) REFERENCES document_chunks (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
-- In the row and not beside it: reading a scope is reading its pages, ten rows each.
ALTER TABLE meaning_vectors ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX meaning_vectors_scope ON meaning_vectors (tenant_id, collection_id);
CREATE INDEX meaning_vectors_document ON meaning_vectors (document_id);

-- A chunk holds several things: the meaning of each part is compared where the chunk is a candidate. The chunk's own
-- vector, which finds candidates, is the mean of its parts' vectors.
CREATE TABLE meaning_parts (
    chunk_id uuid NOT NULL,
    part smallint NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    embedding extensions.halfvec(384) NOT NULL,
    PRIMARY KEY (chunk_id, part),
    FOREIGN KEY (chunk_id, tenant_id) REFERENCES meaning_vectors (chunk_id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
ALTER TABLE meaning_parts ALTER COLUMN embedding SET STORAGE PLAIN;
CREATE INDEX meaning_parts_collection ON meaning_parts (collection_id);

-- Conversations and questions

CREATE TABLE conversations (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid,
    collection_id uuid NOT NULL,
    title text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    api_key_id uuid,
    -- What a program asks belongs to its key, as what a person asks belongs to their account.
    owner_id uuid GENERATED ALWAYS AS (COALESCE(account_id, api_key_id)) STORED,
    CONSTRAINT conversations_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT conversations_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT conversations_api_key_id_fkey FOREIGN KEY (api_key_id, tenant_id)
        REFERENCES api_keys (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT conversations_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT conversation_has_one_owner CHECK (num_nonnulls(account_id, api_key_id) = 1)
);
CREATE INDEX ON conversations (tenant_id, account_id, updated_at DESC);
CREATE INDEX ON conversations (tenant_id, owner_id, updated_at DESC);

CREATE TABLE chat_logs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid,
    user_group text NOT NULL DEFAULT '',
    conversation_id uuid,
    collection_id uuid,
    question text NOT NULL,
    answer text NOT NULL DEFAULT '',
    language text NOT NULL DEFAULT '',
    -- Null while it is being answered; a row left so by a dead process is closed as failed at the next start.
    outcome text
        CHECK (outcome IN ('answered', 'perhaps', 'no_context', 'small_talk', 'asked_back', 'refused', 'stopped',
                           'failed')),
    error text NOT NULL DEFAULT '',
    model text NOT NULL DEFAULT '',
    document_ids uuid[] NOT NULL DEFAULT '{}',
    rag_details jsonb NOT NULL DEFAULT '{}',
    -- Known costs; is_priced is false when a call had no known price.
    cost numeric(14, 8) NOT NULL DEFAULT 0,
    is_priced boolean NOT NULL DEFAULT true,
    first_token_ms integer,
    total_ms integer,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Searches of programs are logged for their costs, apart from the questions that people ask.
    kind text NOT NULL DEFAULT 'question' CHECK (kind IN ('question', 'search')),
    CONSTRAINT chat_logs_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT chat_logs_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (account_id),
    CONSTRAINT chat_logs_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE SET NULL (collection_id),
    CONSTRAINT chat_logs_conversation_id_fkey FOREIGN KEY (conversation_id, tenant_id)
        REFERENCES conversations (id, tenant_id) ON DELETE SET NULL (conversation_id)
);
CREATE INDEX ON chat_logs (tenant_id, created_at DESC);
-- Questions that a dead process left open are looked for again and again; hardly any question is open.
CREATE INDEX ON chat_logs (tenant_id, created_at) WHERE outcome IS NULL;

CREATE TABLE messages (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id uuid NOT NULL,
    role text NOT NULL CHECK (role IN ('user', 'assistant')),
    content text NOT NULL DEFAULT '',
    state text NOT NULL DEFAULT 'complete' CHECK (state IN ('streaming', 'complete', 'stopped', 'cut', 'failed')),
    notice text NOT NULL DEFAULT '',
    citations jsonb NOT NULL DEFAULT '[]',
    chat_log_id uuid,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT messages_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE SET NULL (chat_log_id),
    CONSTRAINT messages_conversation_id_fkey FOREIGN KEY (conversation_id, tenant_id)
        REFERENCES conversations (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON messages (conversation_id, created_at);
CREATE INDEX ON messages (tenant_id);
CREATE INDEX ON messages (chat_log_id);
CREATE INDEX ON messages (tenant_id, created_at) WHERE state = 'streaming';

CREATE TABLE feedback (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    chat_log_id uuid NOT NULL,
    account_id uuid,
    rating smallint NOT NULL CHECK (rating IN (0, 1)),
    comment text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (chat_log_id, account_id),
    CONSTRAINT feedback_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (account_id),
    CONSTRAINT feedback_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON feedback (tenant_id, created_at);

-- Costs

-- One row per paid call. Ids are kept without a reference: what was spent stays when its document is deleted.
CREATE TABLE cost_ledger (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    operation text NOT NULL
        CHECK (operation IN ('embedding', 'chunking', 'reranking', 'translation', 'chat', 'tagging', 'ocr')),
    provider text NOT NULL,
    model text NOT NULL,
    input_tokens bigint NOT NULL DEFAULT 0,
    cached_input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    search_units bigint NOT NULL DEFAULT 0,
    pages bigint NOT NULL DEFAULT 0,
    unit_prices jsonb NOT NULL DEFAULT '{}',
    -- Null: no price is known. Never read as zero.
    cost numeric(14, 8),
    document_id uuid,
    chat_log_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The collection a cost belongs to, so that who may not read it does not count it either. What is deleted
    -- belongs to none.
    collection_id uuid,
    -- A call whose usage is not known, such as one that brought nothing, is a row with an estimate.
    is_estimated boolean NOT NULL DEFAULT false,
    CONSTRAINT cost_ledger_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE SET NULL (collection_id)
);
CREATE INDEX ON cost_ledger (tenant_id, created_at DESC);
CREATE INDEX ON cost_ledger (document_id);
CREATE INDEX ON cost_ledger (chat_log_id);
CREATE INDEX ON cost_ledger (collection_id);

-- A row is written before a paid call and removed with its result: one left after a kill was perhaps answered and not
-- stored. The id is the call's idempotency key at the provider. Documents are named without a reference: a call
-- outlives them.
CREATE TABLE paid_calls (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- The document, or the embedding-again, that the call is made for.
    owner_id uuid NOT NULL,
    operation text NOT NULL
        CHECK (operation IN ('embedding', 'chunking', 'reranking', 'translation', 'chat', 'tagging', 'ocr')),
    digest text NOT NULL,
    sent integer NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The expected bill, what it is for, and how often the call was sent without an answer: after a kill the ledger
    -- holds it as an estimate.
    expected jsonb NOT NULL DEFAULT '{}',
    document_id uuid,
    chat_log_id uuid,
    unsettled integer NOT NULL DEFAULT 1,
    sent_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant_id, owner_id, operation, digest)
);
CREATE INDEX ON paid_calls (chat_log_id);

-- Records

-- Changes that people make, written by triggers: no code path can forget one, and the application cannot remove one.
CREATE TABLE audit_log (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    account_id uuid,
    -- The e-mail address at that time, or the name of an API key.
    actor text NOT NULL,
    -- The kind of thing and the change: 'account added', 'collection changed', 'documents exported'.
    action text NOT NULL,
    target_id text NOT NULL DEFAULT '',
    target text NOT NULL DEFAULT '',
    -- Field → [before, after]; of a secret only that it changed.
    changes jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON audit_log (tenant_id, id DESC);
-- The list of actors is read by going from name to name.
CREATE INDEX audit_log_actors ON audit_log (tenant_id, actor);

-- The proof of a tenant's deletion: rows by table and files, counted before and after; none of their content.
CREATE TABLE tenant_deletions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL,
    rows_before jsonb NOT NULL,
    rows_after jsonb NOT NULL,
    files_before bigint NOT NULL,
    files_after bigint NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The versions of each document, for readers of the database itself.
CREATE VIEW document_versions WITH (security_invoker = true) AS
SELECT original_id, version, id AS document_id, tenant_id, collection_id, title, file_name, sha256, status,
       chunking_method, chunk_count, page_count, created_at, published_at, superseded_at
FROM documents;

-- The seal of identities

CREATE TABLE rag_private.sealing_key (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    key bytea NOT NULL CHECK (length(key) = 64),
    -- The key as HMAC uses it (RFC 2104), so that checking a seal takes two hashes and nothing else.
    inner_key bytea NOT NULL,
    outer_key bytea NOT NULL
);
INSERT INTO rag_private.sealing_key (key, inner_key, outer_key)
SELECT key,
       (SELECT string_agg(set_byte('\x00', 0, get_byte(key, i) # 54), ''::bytea ORDER BY i)
        FROM generate_series(0, 63) i),
       (SELECT string_agg(set_byte('\x00', 0, get_byte(key, i) # 92), ''::bytea ORDER BY i)
        FROM generate_series(0, 63) i)
FROM (SELECT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
             || uuid_send(gen_random_uuid()) AS key) AS made;
