-- A question may end with the closest passages quoted, without being sure that they answer.

ALTER TABLE chat_logs DROP CONSTRAINT chat_logs_outcome_check;
ALTER TABLE chat_logs ADD CONSTRAINT chat_logs_outcome_check CHECK (outcome IN
    ('answered', 'perhaps', 'no_context', 'small_talk', 'asked_back', 'refused', 'stopped', 'failed'));
