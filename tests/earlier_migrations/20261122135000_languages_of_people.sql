-- The language that a person chose for the interface; '' as long as they chose none and the browser's counts.
ALTER TABLE accounts ADD COLUMN language text NOT NULL DEFAULT '' CHECK (language ~ '^[a-z]{0,3}$');
COMMENT ON COLUMN accounts.language IS 'Language of the interface, as two letters; empty: that of the browser.';
