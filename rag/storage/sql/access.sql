-- accounts_by_email --
-- List the accounts with this e-mail address in all tenants, before the tenant is known; needs the address presented.
SELECT id, tenant_id FROM accounts WHERE email = %(email)s ORDER BY last_signed_in_at DESC NULLS LAST, created_at, id

-- account_by_email --
-- Find the account with this e-mail address in the tenant.
SELECT id FROM accounts WHERE tenant_id = rag_tenant() AND email = %(email)s

-- attempts_of_account --
-- Lock an account's count of wrong passwords, so that guesses made at once are counted one after the other.
SELECT failed_attempts,
       coalesce(extract(epoch FROM last_failed_at), 0)::float8 AS last_failed_at,
       waiting_browsers,
       rag_password_hash(id) AS password_hash
FROM accounts WHERE id = %(account_id)s
FOR UPDATE

-- count_attempt --
-- Count an attempt as wrong until its password turns out to be right, and keep the browsers that wait for their turn.
UPDATE accounts
SET failed_attempts = %(failed_attempts)s,
    last_failed_at = to_timestamp(%(last_failed_at)s),
    waiting_browsers = %(waiting)s
WHERE id = %(account_id)s

-- attempts_in_browser --
-- Lock the count of wrong passwords of an account in a browser where it has signed in before.
SELECT b.failed_attempts,
       coalesce(extract(epoch FROM b.last_failed_at), 0)::float8 AS last_failed_at,
       rag_password_hash(a.id) AS password_hash
FROM known_browsers b JOIN accounts a ON a.id = b.account_id
WHERE b.token_hash = decode(%(browser)s, 'hex') AND b.account_id = %(account_id)s
FOR UPDATE OF b

-- count_attempt_in_browser --
-- Do the same as `count_attempt` for this browser alone.
UPDATE known_browsers SET failed_attempts = %(failed_attempts)s, last_failed_at = to_timestamp(%(last_failed_at)s)
WHERE token_hash = decode(%(browser)s, 'hex') AND account_id = %(account_id)s

-- is_known_browser --
-- Tell whether an account has signed in from this browser before.
SELECT EXISTS (SELECT FROM known_browsers
               WHERE token_hash = decode(%(browser)s, 'hex') AND account_id = %(account_id)s)

-- keeps_known_browser --
-- Tell whether anybody of the tenant has signed in from this browser before.
SELECT EXISTS (SELECT FROM known_browsers WHERE token_hash = decode(%(browser)s, 'hex'))

-- know_browser --
-- Note that an account has signed in from this browser.
INSERT INTO known_browsers (token_hash, tenant_id, account_id)
VALUES (decode(%(browser)s, 'hex'), rag_tenant(), %(account_id)s)
ON CONFLICT (token_hash, account_id) DO UPDATE
SET failed_attempts = 0, last_failed_at = NULL, last_used_at = now()

-- drop_old_browsers --
-- Keep only an account's latest browsers, and those only for so many days.
DELETE FROM known_browsers
WHERE account_id = %(account_id)s
  AND (last_used_at < now() - make_interval(days => %(days)s)
       OR token_hash NOT IN (SELECT token_hash FROM known_browsers WHERE account_id = %(account_id)s
                             ORDER BY last_used_at DESC LIMIT %(most)s))

-- forget_browsers --
-- Forget all browsers of an account, after its password has changed.
DELETE FROM known_browsers WHERE account_id = %(account_id)s

-- checked_password --
-- Lock an account and read the hash of its password; needs the account named as the one that is checked.
SELECT rag_password_hash(id) AS password_hash FROM accounts WHERE id = %(account_id)s FOR UPDATE

-- renew_hash --
-- Replace the hash of a password that is made with older parameters; the password stays the same.
UPDATE accounts SET password_hash = %(password_hash)s WHERE id = %(account_id)s

-- record_sign_in --
-- Clear the count of the known browser, or that of all unknown ones; notes the sign-in of an active account.
WITH cleared AS (
    UPDATE known_browsers SET failed_attempts = 0, last_failed_at = NULL
    WHERE token_hash = decode(%(browser)s, 'hex') AND account_id = %(account_id)s
)
UPDATE accounts
SET failed_attempts = CASE WHEN %(browser)s <> '' THEN failed_attempts ELSE 0 END,
    last_failed_at = CASE WHEN %(browser)s <> '' THEN last_failed_at END,
    waiting_browsers = CASE WHEN %(browser)s <> '' THEN waiting_browsers ELSE '[]' END,
    last_signed_in_at = CASE WHEN is_active THEN now() ELSE last_signed_in_at END,
    password_asked_at = NULL
WHERE id = %(account_id)s
RETURNING id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at

-- set_password --
-- Store the hash of an active account's new password and forget wrong attempts.
UPDATE accounts
SET password_hash = %(password_hash)s, failed_attempts = 0, last_failed_at = NULL, waiting_browsers = '[]',
    password_asked_at = NULL
WHERE id = %(account_id)s AND is_active
RETURNING id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at

-- add_account --
-- Add an account to the transaction's tenant.
INSERT INTO accounts (tenant_id, email, name, role, user_group, password_hash)
VALUES (rag_tenant(), %(email)s, %(name)s, %(role)s, %(user_group)s, %(password_hash)s)
RETURNING id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at

-- account --
-- Read one account of the tenant.
SELECT id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at
FROM accounts WHERE id = %(account_id)s

-- account_groups --
-- List the groups that people of the tenant are in.
SELECT DISTINCT user_group FROM accounts WHERE tenant_id = rag_tenant() AND user_group <> '' ORDER BY user_group

-- list_accounts --
-- List all accounts of the tenant by name.
SELECT id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at, password_asked_at
FROM accounts ORDER BY lower(name), email

-- ask_for_password --
-- Note that the person of an active account has lost their password.
UPDATE accounts SET password_asked_at = coalesce(password_asked_at, now()) WHERE id = %(account_id)s AND is_active

-- settle_reset_request --
-- Note that the link somebody asked for has been made.
UPDATE accounts SET password_asked_at = NULL WHERE id = %(account_id)s

-- change_account --
-- Change the given fields; null leaves a field as it is.
UPDATE accounts
SET name = coalesce(%(name)s::text, name),
    role = coalesce(%(role)s::text, role),
    user_group = coalesce(%(user_group)s::text, user_group),
    is_active = coalesce(%(is_active)s::boolean, is_active)
WHERE id = %(account_id)s
RETURNING id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at

-- lock_accounts --
-- Make changes to a tenant's administrators wait for each other; readers do not wait.
SELECT id FROM tenants WHERE id = rag_tenant() FOR NO KEY UPDATE

-- count_active_admins --
-- Count the active administrators.
SELECT count(*) FROM accounts WHERE role = 'admin' AND is_active

-- has_admin --
-- Tell whether the tenant has ever had an administrator.
SELECT EXISTS (SELECT FROM accounts WHERE role = 'admin')

-- names_of_administrators --
-- List whom to ask, by name; addresses are theirs to give.
SELECT name FROM accounts WHERE role = 'admin' AND is_active AND name <> '' ORDER BY created_at, id LIMIT 3

-- drop_unused_links --
-- Void earlier links for the same purpose before a new one is made.
DELETE FROM one_time_links
WHERE purpose = %(purpose)s AND used_at IS NULL AND account_id IS NOT DISTINCT FROM %(account_id)s::uuid

-- add_link --
-- Add a link that works once, kept as the hash of its token.
INSERT INTO one_time_links (token_hash, tenant_id, purpose, account_id, expires_at)
VALUES (decode(%(token_hash)s, 'hex'), rag_tenant(), %(purpose)s, %(account_id)s,
        now() + make_interval(hours => %(hours)s))

-- open_link --
-- Find the tenant and account of a link that still works; needs the token's hash presented.
SELECT tenant_id, account_id FROM one_time_links
WHERE token_hash = decode(%(token_hash)s, 'hex') AND purpose = %(purpose)s AND used_at IS NULL AND expires_at > now()

-- use_link --
-- Use a link up. Of two requests at once, the second waits for the first and then finds nothing.
UPDATE one_time_links SET used_at = now()
WHERE token_hash = decode(%(token_hash)s, 'hex') AND purpose = %(purpose)s AND used_at IS NULL AND expires_at > now()
RETURNING token_hash

-- add_session --
-- Add a session, kept as the hash of its token. Without another time, it counts as a sign-in just now.
INSERT INTO sessions (token_hash, tenant_id, account_id, user_agent, expires_at, proved_at)
VALUES (decode(%(session_id)s, 'hex'), rag_tenant(), %(account_id)s, %(user_agent)s,
        now() + make_interval(days => %(days)s), least(to_timestamp(%(proved_at)s::double precision), now()))

-- note_signed_in --
-- Note that an account has signed in, by password or by a link that was good for one.
UPDATE accounts SET last_signed_in_at = now() WHERE id = %(account_id)s

-- drop_expired_sessions --
-- Remove an account's sessions that no longer work.
DELETE FROM sessions WHERE account_id = %(account_id)s AND expires_at <= now()

-- tenant_of_session --
-- Find the tenant of a session that still works; needs the token's hash presented.
SELECT tenant_id FROM sessions
WHERE token_hash = decode(%(session_id)s, 'hex') AND expires_at > now()
  AND (%(idle_minutes)s = 0 OR last_seen_at > now() - make_interval(mins => %(idle_minutes)s))

-- identity_of_session --
-- Read who acts in a session, by the account's present state. Notes at most once a minute that it is in use.
WITH seen AS (
    UPDATE sessions SET last_seen_at = now()
    WHERE %(is_act)s AND token_hash = decode(%(session_id)s, 'hex') AND last_seen_at < now() - interval '1 minute'
)
SELECT a.id AS account_id, a.tenant_id, a.email, a.name, a.role, a.user_group, a.language,
       %(session_id)s::text AS session_id
FROM sessions s JOIN accounts a ON a.id = s.account_id JOIN tenants t ON t.id = a.tenant_id
WHERE s.token_hash = decode(%(session_id)s, 'hex') AND s.expires_at > now() AND a.is_active
  AND t.suspended_at IS NULL

-- set_language --
-- Set the language in which this account reads the interface; '' is that of the browser.
UPDATE accounts SET language = %(language)s WHERE tenant_id = rag_tenant() AND id = %(account_id)s

-- session_ids_of_account --
-- List the sessions of an account, to read them again.
SELECT encode(token_hash, 'hex') FROM sessions WHERE account_id = %(account_id)s

-- note_act --
-- Note that somebody did something in a session that has not ended.
UPDATE sessions SET last_seen_at = now()
WHERE token_hash = decode(%(session_id)s, 'hex') AND expires_at > now()
  AND (%(idle_minutes)s = 0 OR last_seen_at > now() - make_interval(mins => %(idle_minutes)s))

-- is_recent_sign_in --
-- Tell whether the person of a session proved their identity within so many minutes.
SELECT EXISTS (
    SELECT FROM sessions
    WHERE token_hash = decode(%(session_id)s, 'hex') AND account_id = %(account_id)s AND expires_at > now()
      AND coalesce(proved_at, created_at) > now() - make_interval(mins => %(minutes)s)
)

-- prove_session --
-- Note that the person of a session has proved their identity again.
UPDATE sessions SET proved_at = now()
WHERE token_hash = decode(%(session_id)s, 'hex') AND account_id = %(account_id)s

-- end_session --
-- End one session.
DELETE FROM sessions WHERE token_hash = decode(%(session_id)s, 'hex')

-- end_session_of_account --
-- End one session of an account; do nothing when it belongs to another account.
DELETE FROM sessions WHERE token_hash = decode(%(session_id)s, 'hex') AND account_id = %(account_id)s

-- end_sessions_of_account --
-- End an account's sessions, all or all but one, and return the ended ones.
DELETE FROM sessions
WHERE account_id = %(account_id)s AND encode(token_hash, 'hex') <> %(except_session_id)s
RETURNING encode(token_hash, 'hex')

-- sessions_of_account --
-- List where an account is signed in, latest first.
SELECT encode(token_hash, 'hex') AS session_id, user_agent, created_at, last_seen_at, expires_at
FROM sessions
WHERE account_id = %(account_id)s AND expires_at > now()
  AND (%(idle_minutes)s = 0 OR last_seen_at > now() - make_interval(mins => %(idle_minutes)s))
ORDER BY last_seen_at DESC

-- connect_app --
-- Add a program that a person connects; until it has exchanged its code it can do nothing.
INSERT INTO connected_apps (tenant_id, account_id, name, host, client_id, scopes, resource, redirect_uri,
                            code_challenge, code_hash, code_expires_at, expires_at)
VALUES (rag_tenant(), %(account_id)s, %(name)s, %(host)s, %(client_id)s, %(scopes)s, %(resource)s, %(redirect_uri)s,
        %(code_challenge)s, decode(%(code_hash)s, 'hex'), now() + make_interval(secs => %(code_seconds)s),
        now() + make_interval(secs => %(code_seconds)s))

-- drop_expired_apps --
-- Remove the programs of an account that can do nothing any more.
DELETE FROM connected_apps WHERE account_id = %(account_id)s AND expires_at <= now()

-- app_of_token --
-- Find the program that a code or token belongs to; needs its hash presented.
SELECT c.id, c.tenant_id, c.name, c.scopes, c.redirect_uri, c.code_challenge, c.code_expires_at, c.expires_at,
       c.client_id, c.resource,
       CASE decode(%(token_hash)s, 'hex') WHEN c.code_hash THEN 'code' WHEN c.access_hash THEN 'access'
            ELSE 'refresh' END AS kind
FROM connected_apps c
WHERE decode(%(token_hash)s, 'hex') IN (c.code_hash, c.access_hash, c.refresh_hash)

-- app_of_used_token --
-- Find the program whose code or refresh token this was; needs its hash presented.
SELECT app_id, tenant_id FROM used_app_tokens WHERE token_hash = decode(%(token_hash)s, 'hex')

-- issue_app_tokens --
-- Issue new tokens for a code or a refresh token, which this uses up: of two who present the same one, one gets them.
-- Used ones are remembered for as long as they would have worked.
WITH issued AS (
    UPDATE connected_apps
    SET code_hash = NULL, access_hash = decode(%(access_hash)s, 'hex'),
        refresh_hash = decode(%(refresh_hash)s, 'hex'),
        access_expires_at = now() + make_interval(secs => %(access_seconds)s),
        expires_at = now() + make_interval(secs => %(refresh_seconds)s), last_used_at = now()
    WHERE decode(%(token_hash)s, 'hex') IN (code_hash, refresh_hash)
      AND expires_at > now() AND (code_hash IS NULL OR code_expires_at > now())
    RETURNING id, tenant_id
), used AS (
    INSERT INTO used_app_tokens (token_hash, tenant_id, app_id)
    SELECT decode(%(token_hash)s, 'hex'), tenant_id, id FROM issued
), expired AS (
    DELETE FROM used_app_tokens u USING issued i
    WHERE u.app_id = i.id AND u.used_at < now() - make_interval(secs => %(refresh_seconds)s)
)
SELECT id FROM issued

-- use_app --
-- Read who acts by an access token, by the account's present state.
UPDATE connected_apps c SET last_used_at = now()
FROM accounts a, tenants t
WHERE c.access_hash = decode(%(token_hash)s, 'hex') AND c.access_expires_at > now()
  AND a.id = c.account_id AND a.is_active AND t.id = c.tenant_id AND t.suspended_at IS NULL
RETURNING c.id AS app_id, c.scopes, c.resource, a.id AS account_id, a.tenant_id, a.email, a.name, a.role, a.user_group, a.language

-- disconnect_app --
-- End a program's access.
DELETE FROM connected_apps WHERE id = %(id)s AND (%(account_id)s::uuid IS NULL OR account_id = %(account_id)s)

-- disconnect_apps_of_account --
-- End the access of all programs of an account.
DELETE FROM connected_apps WHERE account_id = %(account_id)s

-- apps_of_account --
-- List the programs that act for a person, the latest first.
SELECT id, name, host, scopes, created_at, last_used_at FROM connected_apps
WHERE account_id = %(account_id)s AND expires_at > now() AND access_hash IS NOT NULL
ORDER BY created_at DESC, id
