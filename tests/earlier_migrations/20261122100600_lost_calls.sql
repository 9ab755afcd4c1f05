-- What was paid for and brought nothing is in the ledger too. A call that told no usage is a row with an estimate.

ALTER TABLE cost_ledger ADD COLUMN is_estimated boolean NOT NULL DEFAULT false;
ALTER TABLE cost_ledger NO FORCE ROW LEVEL SECURITY;
UPDATE cost_ledger SET is_estimated = true WHERE unit_prices ->> 'tokens' = 'estimated';
ALTER TABLE cost_ledger FORCE ROW LEVEL SECURITY;

-- Embedding sentences to cut a document by topic is a cost of cutting it.
ALTER TABLE cost_ledger DROP CONSTRAINT cost_ledger_operation_check;
ALTER TABLE cost_ledger ADD CONSTRAINT cost_ledger_operation_check CHECK (operation IN
    ('embedding', 'chunking', 'reranking', 'translation', 'chat', 'tagging', 'ocr'));
ALTER TABLE paid_calls DROP CONSTRAINT paid_calls_operation_check;
ALTER TABLE paid_calls ADD CONSTRAINT paid_calls_operation_check CHECK (operation IN
    ('embedding', 'chunking', 'chat', 'tagging', 'ocr'));

-- A call under way: what it will be billed as, for whom, and how often it was sent without word of what became of it.
-- After a kill these are what the ledger has to hold as estimates.
ALTER TABLE paid_calls
    ADD COLUMN expected jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN document_id uuid,
    ADD COLUMN chat_log_id uuid,
    ADD COLUMN unsettled integer NOT NULL DEFAULT 1,
    ADD COLUMN sent_at timestamptz NOT NULL DEFAULT clock_timestamp();
CREATE INDEX ON paid_calls (chat_log_id);

-- Searches of programs are logged for their costs, apart from the questions that people ask.
ALTER TABLE chat_logs
    ADD COLUMN kind text NOT NULL DEFAULT 'question' CHECK (kind IN ('question', 'search'));

-- A document whose provider refuses the key or has no money left: it goes on by itself, and `message` says why it waits.
ALTER TABLE documents ADD COLUMN is_waiting boolean NOT NULL DEFAULT false;
