-- A key asks a collection that was chosen when it was made, not the one that it asked last: the same call with the same
-- key gives the same answer. Earlier values were notes of the last question and say nothing about a choice.
ALTER TABLE api_keys RENAME COLUMN last_collection_id TO default_collection_id;
UPDATE api_keys SET default_collection_id = NULL WHERE default_collection_id IS NOT NULL;
COMMENT ON COLUMN api_keys.default_collection_id IS
    'The collection that is asked when a call names none; null: the oldest HR collection with documents.';
