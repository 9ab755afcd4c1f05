-- When the person of a session last proved who they are, where that is another time than its beginning: they were asked
-- again, or had signed in at a provider before they came here. Null: at its beginning.
ALTER TABLE sessions ADD COLUMN proved_at timestamptz;
