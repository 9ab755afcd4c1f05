-- Mark messages with several questions of which the documents answer only some: the others are gaps.
ALTER TABLE chat_logs ADD COLUMN has_unanswered boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN chat_logs.has_unanswered IS 'Whether the documents do not answer one of several questions in the message.';
