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
    CONSTRAINT gap_meanings_gap_id_fkey FOREIGN KEY (gap_id, tenant_id)
        REFERENCES gaps (id, tenant_id) ON DELETE CASCADE
);
CREATE INDEX ON gap_meanings (tenant_id, embedder);
ALTER TABLE gap_questions NO FORCE ROW LEVEL SECURITY;
INSERT INTO gap_meanings
SELECT tenant_id, gap_id, embedder, language, extensions.sum(embedding::extensions.vector), count(*)
FROM gap_questions GROUP BY tenant_id, gap_id, embedder, language;
ALTER TABLE gap_questions FORCE ROW LEVEL SECURITY;

ALTER TABLE gap_meanings ENABLE ROW LEVEL SECURITY;
ALTER TABLE gap_meanings FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON gap_meanings USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY reader ON gap_meanings AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR EXISTS (SELECT FROM gaps g WHERE g.id = gap_id));
GRANT SELECT, INSERT, UPDATE, DELETE ON gap_meanings TO rag_app;

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

-- Questions that belong to no gap yet are found without reading the others.
CREATE INDEX feedback_not_helpful ON feedback (tenant_id, created_at) WHERE rating = 0;

SELECT rag_close_rest_api();
