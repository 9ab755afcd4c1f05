-- What a tenant itself pays, by model and unit, from a day on. Rows are only added: what was charged before a change keeps
-- the price that counted then, and the row says who changed it when.

CREATE TABLE tenant_prices (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    model text NOT NULL CHECK (length(model) BETWEEN 1 AND 200),
    unit text NOT NULL CHECK (unit IN ('input_mtok', 'cached_input_mtok', 'output_mtok', 'search_unit', 'page')),
    -- US dollars; null: the listed price counts from then on.
    price numeric(14, 8) CHECK (price >= 0),
    -- By the calendar of UTC.
    valid_from date NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON tenant_prices (tenant_id, model, unit, valid_from DESC, id DESC);
COMMENT ON TABLE tenant_prices IS 'Prices of a tenant''s own in US dollars; of each model and unit the latest that has begun counts.';

ALTER TABLE tenant_prices ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenant_prices FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenant_prices USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
GRANT SELECT, INSERT ON tenant_prices TO rag_app;
CREATE TRIGGER audit AFTER INSERT ON tenant_prices FOR EACH ROW
    EXECUTE FUNCTION audit_change('price', 'model', 'unit', 'price', 'valid_from');

-- Prices were kept in tenants.settings, where only whoever runs the product could change them.
ALTER TABLE tenants NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tenant_prices NO FORCE ROW LEVEL SECURITY;
INSERT INTO tenant_prices (tenant_id, model, unit, price, valid_from)
SELECT t.id, model.key, unit.key, (unit.value #>> '{}')::numeric(14, 8), (t.created_at AT TIME ZONE 'UTC')::date
FROM tenants t
CROSS JOIN jsonb_each(CASE jsonb_typeof(t.settings -> 'prices') WHEN 'object' THEN t.settings -> 'prices'
                      ELSE '{}' END) model
CROSS JOIN jsonb_each(CASE jsonb_typeof(model.value) WHEN 'object' THEN model.value ELSE '{}' END) unit
WHERE length(model.key) BETWEEN 1 AND 200
  AND unit.key IN ('input_mtok', 'cached_input_mtok', 'output_mtok', 'search_unit', 'page')
  AND unit.value #>> '{}' ~ '^\d{1,6}(\.\d{1,30})?$';
UPDATE tenants SET settings = settings - 'prices' WHERE settings ? 'prices';
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
ALTER TABLE tenant_prices FORCE ROW LEVEL SECURITY;
