-- Who asks the questions of a run now, and until when that holds without being renewed. A process that is killed leaves
-- its claim behind, which runs out by itself.
ALTER TABLE evaluation_runs ADD COLUMN claimed_by uuid, ADD COLUMN claimed_until timestamptz;
