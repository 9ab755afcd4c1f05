-- When the person of a session last proved who they are: as it began, before that at a provider, or when they were asked
-- again. Null in sessions from before this column: as they began.
ALTER TABLE sessions ADD COLUMN proved_at timestamptz;
