-- What a collection's measured threshold was measured on, so that the page can say it.

ALTER TABLE collections
    ADD COLUMN calibrated_model text,
    ADD COLUMN calibrated_passages integer CHECK (calibrated_passages > 0);
