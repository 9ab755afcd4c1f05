-- A key works as long as the person who made it may make one, and has an end. An address belongs to one account of each
-- company, and no longer to one company of all.

ALTER TABLE api_keys
    -- Made by whoever runs the product: no person stands behind it.
    ADD COLUMN is_operators boolean NOT NULL DEFAULT false;
ALTER TABLE api_keys NO FORCE ROW LEVEL SECURITY;
UPDATE api_keys SET is_operators = true WHERE created_by IS NULL;
UPDATE api_keys SET expires_at = now() + interval '90 days' WHERE expires_at IS NULL;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
ALTER TABLE api_keys ALTER COLUMN expires_at SET NOT NULL, ALTER COLUMN expires_at SET DEFAULT now() + interval '90 days';
COMMENT ON COLUMN api_keys.created_by IS
    'Its owner: the key works while they are an active administrator. Null: of the operator, or of somebody deleted.';

ALTER TABLE accounts DROP CONSTRAINT accounts_email_key;
ALTER TABLE accounts ADD CONSTRAINT accounts_email_of_tenant UNIQUE (tenant_id, email);
CREATE INDEX accounts_email ON accounts (email);

-- An account elsewhere closes nothing here.
CREATE OR REPLACE FUNCTION public.rag_claimed_tenant() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    claims jsonb := nullif(pg_catalog.current_setting('request.jwt.claims', true), '')::jsonb;
BEGIN
    RETURN (
        SELECT t.id FROM public.tenants t
        WHERE t.id = claims -> 'app_metadata' ->> 'tenant' AND t.suspended_at IS NULL
          AND NOT EXISTS (SELECT FROM public.accounts a
                          WHERE a.tenant_id = t.id AND a.email = pg_catalog.lower(claims ->> 'email')
                            AND NOT a.is_active)
    );
END
$$;
