-- add_api_key --
-- Add a key, kept as the hash of its secret. It belongs to the person who made it, or to the owner of the key that
-- made it, else to the operator.
INSERT INTO api_keys (tenant_id, name, secret_hash, hint, scopes, requests_per_minute, created_by, is_operators, expires_at,
                      default_collection_id)
SELECT rag_tenant(), %(name)s, decode(%(secret_hash)s, 'hex'), %(hint)s, %(scopes)s, %(requests_per_minute)s,
       owner.id, owner.id IS NULL AND NOT EXISTS (
           SELECT FROM api_keys WHERE id = %(account_id)s AND NOT is_operators),
       %(expires_at)s, (SELECT id FROM collections WHERE tenant_id = rag_tenant() AND id = %(collection_id)s::uuid)
FROM (SELECT coalesce((SELECT id FROM accounts WHERE id = %(account_id)s),
                      (SELECT created_by FROM api_keys WHERE id = %(account_id)s)) AS id) AS owner
RETURNING id

-- list_api_keys --
-- List the tenant's keys: working keys first, then the latest.
SELECT k.id, k.tenant_id, k.name, k.hint, k.scopes, k.requests_per_minute, k.created_at, k.expires_at, k.revoked_at,
       k.last_used_at, k.default_collection_id, coalesce(a.name, '') AS owner_name,
       k.is_operators OR coalesce(a.is_active AND a.role = 'admin', false) AS has_owner
FROM api_keys k LEFT JOIN accounts a ON a.id = k.created_by
WHERE (%(api_key_id)s::uuid IS NULL OR k.id = %(api_key_id)s)
  -- A widget's key is shown with its widget.
  AND k.hint <> ''
ORDER BY k.revoked_at IS NOT NULL OR k.expires_at <= now()
             OR NOT (k.is_operators OR coalesce(a.is_active AND a.role = 'admin', false)), k.created_at DESC, k.id

-- revoke_api_key --
-- Revoke a key at once; its row stays, because the logs refer to it.
UPDATE api_keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = %(api_key_id)s

-- tenant_of_api_key --
-- Find the tenant of a secret; needs its hash presented.
SELECT tenant_id FROM api_keys WHERE secret_hash = decode(%(secret_hash)s, 'hex')

-- use_api_key --
-- Count one request of a key that works, and return what it may and how many are left. The count stops one past the
-- limit. Losing a second of it in a crash of the server is fine, so nobody waits for the disk.
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS setting)
UPDATE api_keys k
SET last_used_at = now(),
    minute_started_at = CASE WHEN k.minute_started_at > now() - interval '1 minute' THEN k.minute_started_at
                             ELSE now() END,
    minute_requests = CASE WHEN k.minute_started_at > now() - interval '1 minute'
                           THEN least(k.minute_requests, k.requests_per_minute) + 1 ELSE 1 END
FROM quick
WHERE k.secret_hash = decode(%(secret_hash)s, 'hex') AND k.revoked_at IS NULL
  AND k.expires_at > now() AND quick.setting = 'off'
  AND (k.is_operators OR EXISTS (
      SELECT FROM accounts a WHERE a.id = k.created_by AND a.is_active AND a.role = 'admin'))
  AND NOT EXISTS (SELECT FROM tenants WHERE suspended_at IS NOT NULL)
RETURNING k.id, k.tenant_id, k.name, k.scopes, k.requests_per_minute, k.minute_requests AS requests,
          ceil(extract(epoch FROM k.minute_started_at + interval '1 minute' - now()))::integer AS reset_seconds
