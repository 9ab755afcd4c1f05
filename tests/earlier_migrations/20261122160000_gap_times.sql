-- Who asked the question of a gap, when, and how it ended, beside its gap: gaps are counted without reading questions,
-- which are long and lie far apart. Whatever erases a question erases this with it.
ALTER TABLE gap_questions
    ADD COLUMN asked_at timestamptz,
    ADD COLUMN account_id uuid,
    ADD COLUMN user_group text NOT NULL DEFAULT '',
    ADD COLUMN language text NOT NULL DEFAULT '',
    ADD COLUMN outcome text NOT NULL DEFAULT '';
ALTER TABLE gap_questions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_logs NO FORCE ROW LEVEL SECURITY;
UPDATE gap_questions q
SET asked_at = l.created_at, account_id = l.account_id, user_group = l.user_group,
    language = coalesce(l.language, ''), outcome = coalesce(l.outcome, '')
FROM chat_logs l WHERE l.id = q.chat_log_id;
ALTER TABLE gap_questions ALTER COLUMN asked_at SET NOT NULL;
ALTER TABLE gap_questions ADD CONSTRAINT gap_questions_account_id_fkey
    FOREIGN KEY (account_id, tenant_id) REFERENCES accounts (id, tenant_id) ON DELETE SET NULL (account_id);
ALTER TABLE gap_questions FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_logs FORCE ROW LEVEL SECURITY;
DROP INDEX gap_questions_tenant_id_idx;
CREATE INDEX gap_questions_asked ON gap_questions (tenant_id, asked_at);
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
GRANT UPDATE (outcome) ON gap_questions TO rag_app;

SELECT rag_close_rest_api();
