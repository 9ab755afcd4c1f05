-- Golden questions of a collection, and runs over them: what was found and said, measured question by question.

CREATE TABLE golden_questions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    -- As rag.evaluation.golden has it: question, document, pages, answer, evidence, language, tags, is_answerable.
    golden jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT golden_questions_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
-- The same question once in a collection.
CREATE UNIQUE INDEX golden_questions_text ON golden_questions (collection_id, md5(golden ->> 'question'));
CREATE INDEX ON golden_questions (tenant_id);

CREATE TABLE evaluation_runs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    -- The profile's name, the model that answers ("" for none), and the settings that differ from the profile's.
    profile text NOT NULL,
    model text NOT NULL,
    overrides jsonb NOT NULL DEFAULT '{}',
    -- The questions as they were when it began: what a run that was interrupted goes on with.
    golden jsonb NOT NULL,
    figures jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz,
    CONSTRAINT evaluation_runs_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT evaluation_runs_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON evaluation_runs (tenant_id, created_at DESC);

CREATE TABLE evaluation_results (
    run_id uuid NOT NULL,
    -- The question's place in the run's list, from 0.
    place integer NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    chat_log_id uuid,
    figures jsonb NOT NULL,
    PRIMARY KEY (run_id, place),
    CONSTRAINT evaluation_results_run_id_fkey FOREIGN KEY (run_id, tenant_id)
        REFERENCES evaluation_runs (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT evaluation_results_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE SET NULL (chat_log_id)
);
CREATE INDEX ON evaluation_results (tenant_id);
CREATE INDEX ON evaluation_results (chat_log_id);

DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['golden_questions', 'evaluation_runs', 'evaluation_results'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', t);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', t);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = (SELECT rag_tenant())) '
                       'WITH CHECK (tenant_id = (SELECT rag_tenant()))', t);
    END LOOP;
END
$$;
CREATE POLICY reader ON golden_questions AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
CREATE POLICY reader ON evaluation_runs AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
CREATE POLICY reader ON evaluation_results AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM evaluation_runs r WHERE r.id = run_id));
GRANT SELECT, INSERT, UPDATE, DELETE ON golden_questions TO rag_app;
GRANT SELECT, INSERT, UPDATE ON evaluation_runs TO rag_app;
GRANT SELECT, INSERT ON evaluation_results TO rag_app;

SELECT rag_close_rest_api();
