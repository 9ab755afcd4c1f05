-- Whether a model checks the answers of a run as well.
ALTER TABLE evaluation_runs ADD COLUMN is_judged boolean NOT NULL DEFAULT false;
-- How likely the passages answered a question, kept beside its gap: the log's own is deep in its JSON.
ALTER TABLE gap_questions ADD COLUMN probability real;
ALTER TABLE gap_questions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_logs NO FORCE ROW LEVEL SECURITY;
UPDATE gap_questions q SET probability = (l.rag_details #>> '{evidence,probability}')::real
FROM chat_logs l WHERE l.id = q.chat_log_id AND l.rag_details #>> '{evidence,probability}' IS NOT NULL;
ALTER TABLE gap_questions FORCE ROW LEVEL SECURITY;
ALTER TABLE chat_logs FORCE ROW LEVEL SECURITY;
