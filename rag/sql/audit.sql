-- The audit log: written by triggers, read by administrators.

-- add_audit_entry --
-- An act that changes no row; the actor is the transaction's.
INSERT INTO audit_log (tenant_id, account_id, actor, action, target, changes)
VALUES (rag_tenant(), rag_account(), rag_actor(), %(action)s, %(target)s, %(changes)s)

-- audit_entries --
-- The latest entries that meet the conditions given.
SELECT id, account_id, actor, action, target_id, target, changes, created_at
FROM audit_log
WHERE tenant_id = (SELECT rag_tenant())
  AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s)
  AND (%(actor)s::text IS NULL OR actor = %(actor)s)
  AND (%(kind)s::text IS NULL OR action LIKE %(kind)s || ' %%')
  AND (%(text)s::text IS NULL OR strpos(lower(target || ' ' || changes::text), lower(%(text)s)) > 0)
ORDER BY id DESC
LIMIT %(limit)s

-- audit_actors --
-- Everybody who ever changed something, found in the index from one name to the next.
WITH RECURSIVE found AS (
    (SELECT actor FROM audit_log WHERE tenant_id = (SELECT rag_tenant()) ORDER BY actor LIMIT 1)
    UNION ALL
    SELECT (SELECT l.actor FROM audit_log l WHERE l.tenant_id = (SELECT rag_tenant()) AND l.actor > found.actor
            ORDER BY l.actor LIMIT 1)
    FROM found WHERE found.actor IS NOT NULL
)
SELECT actor FROM found WHERE actor IS NOT NULL ORDER BY actor
