-- What the latest question of a conversation was narrowed to: documents, categories, years, importance, fields. Empty: nothing.
ALTER TABLE conversations ADD COLUMN narrowed_to jsonb NOT NULL DEFAULT '{}';
