-- Whether the latest question of a conversation was asked in all collections that its owner may read.
ALTER TABLE conversations ADD COLUMN asks_all boolean NOT NULL DEFAULT false;

-- An answer from several collections may quote those that only some groups read: whoever may not read one of these, or
-- no longer, reads neither the answer, where it was shared, nor its log. NULL: none of them is limited to groups.
ALTER TABLE messages ADD COLUMN limited_to uuid[];
ALTER TABLE chat_logs ADD COLUMN limited_to uuid[];
ALTER POLICY reader ON messages
    USING ((SELECT rag_reads_all())
           OR EXISTS (SELECT FROM conversations c WHERE c.id = conversation_id)
           AND (limited_to IS NULL OR limited_to <@ ARRAY(SELECT id FROM collections)));
ALTER POLICY reader ON chat_logs
    USING ((SELECT rag_reads_all())
           OR (collection_id IS NULL OR collection_id = ANY (ARRAY(SELECT id FROM collections)))
           AND (limited_to IS NULL OR limited_to <@ ARRAY(SELECT id FROM collections)));
