-- Count a widget's questions of a day in one place. Count wrong codes in a known browser apart from those of strangers,
-- who take turns, as wrong passwords are counted.

ALTER TABLE widgets
    -- The day, in the tenant's time zone, that `counted` is of.
    ADD COLUMN counted_on date,
    ADD COLUMN counted integer NOT NULL DEFAULT 0;

ALTER TABLE known_browsers
    ADD COLUMN failed_codes integer NOT NULL DEFAULT 0,
    ADD COLUMN last_failed_code_at timestamptz;

ALTER TABLE second_factors ADD COLUMN waiting_browsers jsonb NOT NULL DEFAULT '[]';

SELECT rag_close_rest_api();
