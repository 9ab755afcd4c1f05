-- The second factor of an account, and who needs one.

-- second_factor_state --
-- Tell whether an account has a second factor in use, and whether its role needs one.
SELECT EXISTS (SELECT FROM second_factors f WHERE f.account_id = a.id AND f.confirmed_at IS NOT NULL),
       coalesce((SELECT t.settings -> 'second_factor' ? a.role FROM tenants t WHERE t.id = a.tenant_id), false)
FROM accounts a WHERE a.id = %(account_id)s

-- second_factor_roles --
-- List the roles that need a second factor.
SELECT coalesce(settings -> 'second_factor', '[]') FROM tenants WHERE id = rag_tenant()

-- require_second_factor --
-- Set the roles that need a second factor.
UPDATE tenants SET settings = jsonb_set(settings, '{second_factor}', %(roles)s) WHERE id = rag_tenant()

-- second_factors --
-- List the accounts that have a second factor in use.
SELECT account_id FROM second_factors WHERE tenant_id = rag_tenant() AND confirmed_at IS NOT NULL

-- begin_second_factor --
-- Keep a new secret that is not in use yet; one that is there stays.
INSERT INTO second_factors (account_id, tenant_id, secret) VALUES (%(account_id)s, rag_tenant(), %(secret)s)
ON CONFLICT (account_id) DO NOTHING

-- lock_second_factor --
-- Lock and read the second factor of an account, so that guesses made at once wait for each other.
SELECT secret, confirmed_at IS NOT NULL, last_step, failed_attempts,
       coalesce(extract(epoch FROM last_failed_at), 0)::float8
FROM second_factors WHERE account_id = %(account_id)s FOR UPDATE

-- count_wrong_code --
-- Count a code as wrong until it has proved right.
UPDATE second_factors SET failed_attempts = %(failed_attempts)s, last_failed_at = to_timestamp(%(now)s)
WHERE account_id = %(account_id)s

-- accept_code --
-- Note that a code was right; it does not work again.
UPDATE second_factors SET failed_attempts = 0, last_failed_at = NULL, last_step = greatest(last_step, %(step)s)
WHERE account_id = %(account_id)s

-- confirm_second_factor --
-- Put a second factor into use, after its first code was right.
UPDATE second_factors SET confirmed_at = now() WHERE account_id = %(account_id)s AND confirmed_at IS NULL

-- drop_second_factor --
-- Remove a second factor; the password alone is enough again.
DELETE FROM second_factors WHERE account_id = %(account_id)s

-- drop_recovery_codes --
-- Remove the earlier recovery codes.
DELETE FROM recovery_codes WHERE account_id = %(account_id)s

-- add_recovery_code --
-- Add a recovery code that works once, kept as its hash.
INSERT INTO recovery_codes (account_id, code_hash, tenant_id) VALUES (%(account_id)s, %(code_hash)s, rag_tenant())

-- use_recovery_code --
-- Use a recovery code up; of two requests at once, one finds nothing.
UPDATE recovery_codes SET used_at = now()
WHERE account_id = %(account_id)s AND code_hash = %(code_hash)s AND used_at IS NULL
RETURNING account_id

-- count_recovery_codes --
-- Count the recovery codes that are left.
SELECT count(*) FROM recovery_codes WHERE account_id = %(account_id)s AND used_at IS NULL
