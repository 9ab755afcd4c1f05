-- A draft that its author deleted: its texts are gone, and what it cost still counts for the month's budgets.

ALTER TABLE opinions ADD COLUMN deleted_at timestamptz;
