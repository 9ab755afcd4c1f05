-- Conversations can be pinned and shared inside the company, and a thumb down says why.

ALTER TABLE conversations ADD COLUMN pinned_at timestamptz;
ALTER TABLE conversations ADD COLUMN shared_at timestamptz;
COMMENT ON COLUMN conversations.shared_at IS 'Messages up to then may be read by colleagues who may read the collection.';

ALTER TABLE feedback ADD COLUMN reason text NOT NULL DEFAULT ''
    CHECK (reason IN ('', 'wrong', 'incomplete', 'outdated', 'wrong_source'));
