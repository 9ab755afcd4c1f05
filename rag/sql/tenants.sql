-- create_tenant --
-- Add the tenant of this transaction unless it is there.
INSERT INTO tenants (id, name) VALUES (%(id)s, %(name)s)
ON CONFLICT (id) DO NOTHING;

-- tenant_settings --
-- A tenant's own settings, such as prices.
SELECT settings FROM tenants;

-- has_accounts --
-- Whether anybody has an account yet.
SELECT EXISTS (SELECT FROM accounts);
