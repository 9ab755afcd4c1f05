-- How many wordings a gap has, counted without reading questions: a hash of each beside its gap.
ALTER TABLE gap_questions ADD COLUMN wording integer NOT NULL DEFAULT 0;
ALTER TABLE gap_questions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_logs NO FORCE ROW LEVEL SECURITY;
UPDATE gap_questions q SET wording = hashtext(l.question) FROM chat_logs l WHERE l.id = q.chat_log_id;
ALTER TABLE gap_questions FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_logs FORCE ROW LEVEL SECURITY;
-- With everything that is counted: the rows themselves hold vectors.
DROP INDEX gap_questions_asked;
CREATE INDEX gap_questions_asked ON gap_questions (tenant_id, asked_at)
    INCLUDE (gap_id, chat_log_id, account_id, user_group, language, outcome, probability, wording);
