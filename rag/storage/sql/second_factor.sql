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
       coalesce(extract(epoch FROM last_failed_at), 0)::float8, waiting_browsers
FROM second_factors WHERE account_id = %(account_id)s FOR UPDATE

-- count_wrong_code --
-- Count a code as wrong until it has proved right, and keep the browsers that wait for their turn.
UPDATE second_factors
SET failed_attempts = %(failed_attempts)s, last_failed_at = to_timestamp(%(last_failed_at)s),
    waiting_browsers = %(waiting)s
WHERE account_id = %(account_id)s

-- codes_in_browser --
-- Lock the count of wrong codes of an account in a browser where it has signed in before.
SELECT failed_codes, coalesce(extract(epoch FROM last_failed_code_at), 0)::float8
FROM known_browsers WHERE token_hash = decode(%(browser)s, 'hex') AND account_id = %(account_id)s
FOR UPDATE

-- count_wrong_code_in_browser --
-- Do the same as `count_wrong_code` for this browser alone.
UPDATE known_browsers SET failed_codes = %(failed_attempts)s, last_failed_code_at = to_timestamp(%(last_failed_at)s)
WHERE token_hash = decode(%(browser)s, 'hex') AND account_id = %(account_id)s

-- accept_code --
-- Note that a code was right; it does not work again. Clears the count of the known browser, or that of all others.
WITH cleared AS (
    UPDATE known_browsers SET failed_codes = 0, last_failed_code_at = NULL
    WHERE token_hash = decode(%(browser)s, 'hex') AND account_id = %(account_id)s
)
UPDATE second_factors
SET failed_attempts = CASE WHEN %(browser)s <> '' THEN failed_attempts ELSE 0 END,
    last_failed_at = CASE WHEN %(browser)s <> '' THEN last_failed_at END,
    waiting_browsers = CASE WHEN %(browser)s <> '' THEN waiting_browsers ELSE '[]' END,
    last_step = greatest(last_step, %(step)s)
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
