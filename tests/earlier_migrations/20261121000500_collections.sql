-- The least similarity that separates a collection's own related passages from the others, measured with its embedder.
-- Null until it was measured; a profile says whether it counts.

ALTER TABLE collections
    ADD COLUMN calibrated_threshold double precision CHECK (calibrated_threshold BETWEEN -1 AND 1),
    ADD COLUMN calibrated_at timestamptz;
