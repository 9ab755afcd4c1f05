-- Gaps in the documents, and measured runs over golden questions.

-- Questions that the documents did not answer, or that were rated as not helpful, grouped by what they ask: each group is
-- a gap, which somebody fills with a document or an answer, or dismisses.
CREATE TABLE gaps (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    collection_id uuid NOT NULL,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'solved', 'dismissed')),
    -- Why it was dismissed.
    reason text NOT NULL DEFAULT '',
    assigned_to uuid,
    -- The document that answers it.
    solved_by_id uuid,
    changed_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    -- The document that was uploaded to answer it, and who uploaded it. Once it is searchable, the gap is solved by it.
    awaits_id uuid,
    awaited_by uuid,
    CONSTRAINT gaps_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT gaps_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT gaps_assigned_to_fkey FOREIGN KEY (assigned_to, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (assigned_to),
    CONSTRAINT gaps_awaits_id_fkey FOREIGN KEY (awaits_id, tenant_id)
        REFERENCES documents (id, tenant_id) ON DELETE SET NULL (awaits_id),
    CONSTRAINT gaps_awaited_by_fkey FOREIGN KEY (awaited_by, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (awaited_by),
    CONSTRAINT gaps_solved_by_id_fkey FOREIGN KEY (solved_by_id, tenant_id)
        REFERENCES documents (id, tenant_id) ON DELETE SET NULL (solved_by_id)
);
CREATE INDEX ON gaps (tenant_id, collection_id);
CREATE INDEX gaps_awaiting ON gaps (tenant_id, awaits_id) WHERE awaits_id IS NOT NULL;

-- The questions of a gap.
CREATE TABLE gap_questions (
    chat_log_id uuid PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    gap_id uuid NOT NULL,
    -- What it means, by the embedder of that name; questions of other embedders are not compared with it.
    embedder text NOT NULL,
    embedding extensions.halfvec NOT NULL,
    -- How likely the passages answered it: the log's own is deep in its JSON.
    probability real,
    -- Who asked, when, and how it ended: gaps are counted without reading questions, which are long and lie far apart.
    -- Whatever erases a question erases this with it.
    asked_at timestamptz NOT NULL,
    account_id uuid,
    user_group text NOT NULL DEFAULT '',
    language text NOT NULL DEFAULT '',
    outcome text NOT NULL DEFAULT '',
    -- A hash of its wording, by which a gap's wordings are counted.
    wording integer NOT NULL DEFAULT 0,
    CONSTRAINT gap_questions_account_id_fkey FOREIGN KEY (account_id, tenant_id)
        REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (account_id),
    CONSTRAINT gap_questions_chat_log_id_fkey FOREIGN KEY (chat_log_id, tenant_id)
        REFERENCES chat_logs (id, tenant_id) ON DELETE CASCADE,
    CONSTRAINT gap_questions_gap_id_fkey FOREIGN KEY (gap_id, tenant_id) REFERENCES gaps (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON gap_questions (gap_id);
-- With everything that is counted: the rows themselves hold vectors.
CREATE INDEX gap_questions_asked ON gap_questions (tenant_id, asked_at)
    INCLUDE (gap_id, chat_log_id, account_id, user_group, language, outcome, probability, wording);
CREATE INDEX gap_questions_of_account ON gap_questions (account_id) WHERE account_id IS NOT NULL;

-- An outcome that is corrected later is corrected here, too. Questions that are just answered are in no gap.
CREATE FUNCTION public.gap_outcome_changed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE public.gap_questions SET outcome = coalesce(NEW.outcome, '') WHERE chat_log_id = NEW.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER gap_outcome AFTER UPDATE OF outcome ON chat_logs FOR EACH ROW
    WHEN (OLD.outcome IS NOT NULL AND OLD.outcome IS DISTINCT FROM NEW.outcome)
    EXECUTE FUNCTION gap_outcome_changed();

-- What the questions of a gap mean together, added up by language: a new question is compared with one row of each gap,
-- not with every question.
CREATE TABLE gap_meanings (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    gap_id uuid NOT NULL,
    embedder text NOT NULL,
    language text NOT NULL,
    total extensions.vector NOT NULL,
    questions bigint NOT NULL,
    PRIMARY KEY (gap_id, embedder, language),
    CONSTRAINT gap_meanings_gap_id_fkey FOREIGN KEY (gap_id, tenant_id) REFERENCES gaps (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON gap_meanings (tenant_id, embedder);

-- Whatever adds or erases a question changes what its gap means.
CREATE FUNCTION public.gap_meaning_changed() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO public.gap_meanings AS m (tenant_id, gap_id, embedder, language, total, questions)
        VALUES (NEW.tenant_id, NEW.gap_id, NEW.embedder, NEW.language, NEW.embedding::extensions.vector, 1)
        ON CONFLICT (gap_id, embedder, language) DO UPDATE
            SET total = m.total OPERATOR(extensions.+) excluded.total, questions = m.questions + 1;
    ELSE
        UPDATE public.gap_meanings
        SET total = total OPERATOR(extensions.-) OLD.embedding::extensions.vector, questions = questions - 1
        WHERE gap_id = OLD.gap_id AND embedder = OLD.embedder AND language = OLD.language;
        DELETE FROM public.gap_meanings
        WHERE gap_id = OLD.gap_id AND embedder = OLD.embedder AND language = OLD.language AND questions < 1;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER gap_meaning AFTER INSERT OR DELETE ON gap_questions FOR EACH ROW
    EXECUTE FUNCTION gap_meaning_changed();

-- Golden questions of a collection.
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

-- Runs over golden questions: what was found and said, measured question by question.
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
    -- Whether a model checks the answers as well.
    is_judged boolean NOT NULL DEFAULT false,
    -- Runs made at night are compared with each other: those by day may be trials of other settings.
    is_nightly boolean NOT NULL DEFAULT false,
    -- Who asks its questions now, and until when that holds without being renewed. A process that is killed leaves its
    -- claim behind, which runs out by itself.
    claimed_by uuid,
    claimed_until timestamptz,
    CONSTRAINT evaluation_runs_of_tenant UNIQUE (id, tenant_id),
    CONSTRAINT evaluation_runs_collection_id_fkey FOREIGN KEY (collection_id, tenant_id)
        REFERENCES collections (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON evaluation_runs (tenant_id, created_at DESC);

-- The figures of each question of a run.
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
