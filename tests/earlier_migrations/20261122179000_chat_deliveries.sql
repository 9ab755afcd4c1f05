-- What chat programs such as Slack delivered within the last day: they send again what was not confirmed in time, and the
-- repetition may reach another process.

CREATE TABLE chat_deliveries (
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Which program, such as slack.
    program text NOT NULL,
    -- As the program names what it delivered, hashed.
    delivery bytea NOT NULL CHECK (length(delivery) = 32),
    delivered_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, program, delivery)
);
COMMENT ON TABLE chat_deliveries IS 'What chat programs delivered within the last day.';

ALTER TABLE chat_deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE chat_deliveries FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON chat_deliveries USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT, DELETE ON chat_deliveries TO rag_app;

SELECT rag_close_rest_api();
