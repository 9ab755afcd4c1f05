-- Runs that were made at night, which are compared with each other: those by day may be trials of other settings.
ALTER TABLE evaluation_runs ADD COLUMN is_nightly boolean NOT NULL DEFAULT false;
