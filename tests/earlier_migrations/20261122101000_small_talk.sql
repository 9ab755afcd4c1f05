-- Two more ways a question may end: a greeting or the like, met in one line, and a question back on which document is
-- meant. Neither is an answer from the documents nor a gap in them.
ALTER TABLE chat_logs DROP CONSTRAINT chat_logs_outcome_check;
ALTER TABLE chat_logs ADD CONSTRAINT chat_logs_outcome_check
    CHECK (outcome IN ('answered', 'no_context', 'small_talk', 'asked_back', 'refused', 'stopped', 'failed'));
