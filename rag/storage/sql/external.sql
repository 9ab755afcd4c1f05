-- external_identity --
-- Find the account of a person of another sign-in service; needs the hash of service and person presented.
SELECT tenant_id, account_id FROM external_identities WHERE subject_hash = decode(%(subject_hash)s, 'hex')

-- external_subject --
-- Read another service's id for the person of an account.
SELECT subject FROM external_identities WHERE account_id = %(account_id)s AND issuer = %(issuer)s

-- add_external_identity --
-- Bind an account to a person of another service; do nothing when either is bound already.
INSERT INTO external_identities (subject_hash, tenant_id, account_id, issuer, subject)
VALUES (decode(%(subject_hash)s, 'hex'), rag_tenant(), %(account_id)s, %(issuer)s, %(subject)s)
ON CONFLICT DO NOTHING
RETURNING account_id

-- update_external_account --
-- Store what the other service says about a person; null keeps the role.
UPDATE accounts
SET email = %(email)s, name = CASE WHEN %(name)s = '' THEN name ELSE %(name)s END,
    role = coalesce(%(role)s::text, role)
WHERE id = %(account_id)s
RETURNING id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at

-- add_session_origin --
-- Store the details of the other service's session that one of ours began with.
INSERT INTO session_origins (token_hash, tenant_id, issuer, subject_hash, session_hash, secret, check_after)
VALUES (decode(%(session_id)s, 'hex'), rag_tenant(), %(issuer)s, decode(%(subject_hash)s, 'hex'),
        decode(nullif(%(session_hash)s, ''), 'hex'), %(secret)s,
        now() + make_interval(secs => %(check_after_seconds)s::double precision))

-- limit_session --
-- Shorten a session that began elsewhere to the limit for those.
UPDATE sessions SET expires_at = least(expires_at, now() + make_interval(secs => %(seconds)s::double precision))
WHERE token_hash = decode(%(session_id)s, 'hex')

-- claim_session_check --
-- Claim the check of a session at the other service; others find nothing, and a failed check is repeated later.
UPDATE session_origins SET check_after = now() + interval '5 minutes'
WHERE token_hash = decode(%(session_id)s, 'hex') AND check_after <= now()
RETURNING secret

-- issuer_of_session --
-- Find the service at which a session began.
SELECT issuer FROM session_origins WHERE token_hash = decode(%(session_id)s, 'hex')

-- renew_session_origin --
-- Store the secret and the time for the next check.
UPDATE session_origins
SET secret = %(secret)s, check_after = now() + make_interval(secs => %(check_after_seconds)s::double precision)
WHERE token_hash = decode(%(session_id)s, 'hex')

-- session_secret --
-- Read the secret that the other service needs to end its own session.
SELECT secret FROM session_origins WHERE token_hash = decode(%(session_id)s, 'hex')

-- tenants_of_origin --
-- List the tenants whose sessions another service means; needs the hash of its person or session presented.
SELECT DISTINCT tenant_id FROM session_origins
WHERE decode(%(origin_hash)s, 'hex') IN (subject_hash, session_hash)

-- end_sessions_of_origin --
-- End the sessions that began with this person or session of another service.
DELETE FROM sessions s USING session_origins o
WHERE o.token_hash = s.token_hash AND decode(%(origin_hash)s, 'hex') IN (o.subject_hash, o.session_hash)
RETURNING encode(s.token_hash, 'hex')
