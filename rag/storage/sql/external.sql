-- external_identity --
-- Which account a person of another sign-in service is; needs the hash of service and person presented.
SELECT tenant_id, account_id FROM external_identities WHERE subject_hash = decode(%(subject_hash)s, 'hex')

-- external_subject --
-- What another service calls the person of an account.
SELECT subject FROM external_identities WHERE account_id = %(account_id)s AND issuer = %(issuer)s

-- add_external_identity --
-- Binds an account to a person of another service; nothing happens when either is bound already.
INSERT INTO external_identities (subject_hash, tenant_id, account_id, issuer, subject)
VALUES (decode(%(subject_hash)s, 'hex'), rag_tenant(), %(account_id)s, %(issuer)s, %(subject)s)
ON CONFLICT DO NOTHING
RETURNING account_id

-- update_external_account --
-- What the other service says of a person; a null role is left as it is.
UPDATE accounts
SET email = %(email)s, name = CASE WHEN %(name)s = '' THEN name ELSE %(name)s END,
    role = coalesce(%(role)s::text, role)
WHERE id = %(account_id)s
RETURNING id, tenant_id, email, name, role, user_group, is_active, created_at, last_signed_in_at

-- add_session_origin --
-- What is known of the other service's session that one of ours began with.
INSERT INTO session_origins (token_hash, tenant_id, issuer, subject_hash, session_hash, secret, check_after)
VALUES (decode(%(session_id)s, 'hex'), rag_tenant(), %(issuer)s, decode(%(subject_hash)s, 'hex'),
        decode(nullif(%(session_hash)s, ''), 'hex'), %(secret)s,
        now() + make_interval(secs => %(check_after_seconds)s::double precision))

-- limit_session --
-- A session that began elsewhere lasts no longer than is set for those.
UPDATE sessions SET expires_at = least(expires_at, now() + make_interval(secs => %(seconds)s::double precision))
WHERE token_hash = decode(%(session_id)s, 'hex')

-- claim_session_check --
-- Whoever gets the row asks the other service; the others find nothing, and it is asked again if that fails.
UPDATE session_origins SET check_after = now() + interval '5 minutes'
WHERE token_hash = decode(%(session_id)s, 'hex') AND check_after <= now()
RETURNING secret

-- issuer_of_session --
-- The service that a session began at.
SELECT issuer FROM session_origins WHERE token_hash = decode(%(session_id)s, 'hex')

-- renew_session_origin --
-- What to ask with the next time, and when.
UPDATE session_origins
SET secret = %(secret)s, check_after = now() + make_interval(secs => %(check_after_seconds)s::double precision)
WHERE token_hash = decode(%(session_id)s, 'hex')

-- session_secret --
-- What the other service wants to see to end its own session.
SELECT secret FROM session_origins WHERE token_hash = decode(%(session_id)s, 'hex')

-- tenants_of_origin --
-- Whose sessions another service means; needs the hash of its person or session presented.
SELECT DISTINCT tenant_id FROM session_origins
WHERE decode(%(origin_hash)s, 'hex') IN (subject_hash, session_hash)

-- end_sessions_of_origin --
-- Ends the sessions that began with this person or session of another service.
DELETE FROM sessions s USING session_origins o
WHERE o.token_hash = s.token_hash AND decode(%(origin_hash)s, 'hex') IN (o.subject_hash, o.session_hash)
RETURNING encode(s.token_hash, 'hex')
