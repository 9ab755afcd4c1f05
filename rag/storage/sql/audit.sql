-- The audit log: written by triggers, read by administrators.

-- add_audit_entry --
-- Record an act that changes no row; the actor is the transaction's.
INSERT INTO audit_log (tenant_id, account_id, actor, action, target, changes)
VALUES (rag_tenant(), rag_account(), rag_actor(), %(action)s, %(target)s, %(changes)s)

-- note_sign_in --
-- Record a sign-in or a refused one; the actor is the account's person, no matter who typed the password.
INSERT INTO audit_log (tenant_id, account_id, actor, action, target_id, target)
SELECT tenant_id, id, email, %(action)s, id::text, %(target)s FROM accounts
WHERE tenant_id = rag_tenant() AND id = %(account_id)s

-- note_reading --
-- Record that somebody opened another person's question, at most once within an hour.
INSERT INTO audit_log (tenant_id, account_id, actor, action, target_id, target)
SELECT rag_tenant(), rag_account(), rag_actor(), 'conversation read', l.id::text, coalesce(a.email, '')
FROM chat_logs l LEFT JOIN accounts a ON a.id = l.account_id
WHERE l.id = %(chat_log_id)s AND l.account_id IS DISTINCT FROM rag_account() AND rag_account() IS NOT NULL
  AND NOT EXISTS (
      SELECT FROM audit_log o
      WHERE o.tenant_id = rag_tenant() AND o.actor = rag_actor() AND o.account_id = rag_account()
        AND o.action = 'conversation read' AND o.target_id = l.id::text AND o.created_at > now() - interval '1 hour')

-- audit_after --
-- List the entries with a higher number, in their order.
SELECT id, account_id, actor, action, target_id, target, changes, created_at
FROM audit_log WHERE tenant_id = (SELECT rag_tenant()) AND id > %(after)s ORDER BY id LIMIT %(limit)s

-- last_audit_entry --
-- Read the highest number so far.
SELECT coalesce(max(id), 0) FROM audit_log WHERE tenant_id = (SELECT rag_tenant())

-- audit_entries --
-- List the latest acts with a row that meets the given conditions. An act on several things is one entry, with their
-- names and the changes of the first; of its versions, those of the one that was changed last. After several steps, each
-- field has its value before the first step and after the last.
WITH matching AS MATERIALIZED (
    SELECT id, account_id, actor, action, coalesce(act, 'entry ' || id::text) AS act
    FROM audit_log
    WHERE tenant_id = (SELECT rag_tenant())
      AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s)
      AND (%(actor)s::text IS NULL OR actor = %(actor)s)
      AND (%(kind)s::text IS NULL OR action LIKE %(kind)s || ' %%')
      AND (%(text)s::text IS NULL OR strpos(lower(target || ' ' || changes::text), lower(%(text)s)) > 0)
    ORDER BY id DESC
    LIMIT %(most)s
), acts AS (
    SELECT act, account_id, actor, action, max(id) AS latest FROM matching
    GROUP BY act, account_id, actor, action ORDER BY max(id) DESC LIMIT %(limit)s
), entries AS (
    SELECT acts.latest, max(l.id) AS id, l.account_id, l.actor, l.action,
           (array_agg(l.target_id ORDER BY l.id))[1] AS target_id, (array_agg(l.target ORDER BY l.id))[1] AS target,
           array_agg(l.thing_id ORDER BY l.id) AS thing_ids, array_agg(l.target_id ORDER BY l.id) AS target_ids,
           array_agg(l.changes ORDER BY l.id) AS steps,
           min(l.created_at) AS created_at,
           count(DISTINCT coalesce(nullif(l.thing_id, ''), nullif(l.target_id, ''), l.target))::integer AS things,
           (array_agg(DISTINCT l.target))[:%(names)s] AS targets
    FROM acts JOIN audit_log l ON l.tenant_id = (SELECT rag_tenant())
        AND coalesce(l.act, 'entry ' || l.id::text) = acts.act
        AND l.action = acts.action AND l.actor = acts.actor AND l.account_id IS NOT DISTINCT FROM acts.account_id
    GROUP BY acts.act, acts.latest, l.account_id, l.actor, l.action
)
SELECT id, account_id, actor, action, target_id, target, created_at, things, targets,
       CASE WHEN thing_ids[1] <> '' AND action LIKE '%% changed' THEN coalesce(whole.changes, '{}') ELSE steps[1] END AS changes
FROM entries CROSS JOIN LATERAL (
    SELECT u.target_id AS version FROM unnest(thing_ids, target_ids) WITH ORDINALITY AS u (thing_id, target_id, place)
    WHERE u.thing_id = thing_ids[1] ORDER BY u.place DESC LIMIT 1
) last_changed CROSS JOIN LATERAL (
    SELECT jsonb_object_agg(field, CASE jsonb_typeof(values[1]) WHEN 'array'
               THEN jsonb_build_array(values[1] -> 0, values[array_length(values, 1)] -> 1) ELSE values[1] END) AS changes
    FROM (SELECT f.key AS field, array_agg(f.value ORDER BY s.place) AS values
          FROM unnest(target_ids, steps) WITH ORDINALITY AS s (changed_id, changes, place), jsonb_each(s.changes) f
          WHERE s.changed_id = version GROUP BY f.key) fields
) whole
ORDER BY latest DESC

-- audit_rows --
-- List every row of the latest acts with a row that meets the given conditions, the latest first.
WITH matching AS MATERIALIZED (
    SELECT id, account_id, actor, action, coalesce(act, 'entry ' || id::text) AS act
    FROM audit_log
    WHERE tenant_id = (SELECT rag_tenant())
      AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s)
      AND (%(actor)s::text IS NULL OR actor = %(actor)s)
      AND (%(kind)s::text IS NULL OR action LIKE %(kind)s || ' %%')
      AND (%(text)s::text IS NULL OR strpos(lower(target || ' ' || changes::text), lower(%(text)s)) > 0)
    ORDER BY id DESC
    LIMIT %(most)s
), acts AS (
    SELECT act, account_id, actor, action, max(id) AS latest FROM matching
    GROUP BY act, account_id, actor, action ORDER BY max(id) DESC LIMIT %(limit)s
)
SELECT l.id, l.account_id, l.actor, l.action, l.target_id, l.target, l.changes, l.created_at, acts.act
FROM acts JOIN audit_log l ON l.tenant_id = (SELECT rag_tenant()) AND coalesce(l.act, 'entry ' || l.id::text) = acts.act
    AND l.action = acts.action AND l.actor = acts.actor AND l.account_id IS NOT DISTINCT FROM acts.account_id
ORDER BY l.id DESC LIMIT %(most)s

-- audit_actors --
-- List everybody who ever changed something, by going through the index from one name to the next.
WITH RECURSIVE found AS (
    (SELECT actor FROM audit_log WHERE tenant_id = (SELECT rag_tenant()) ORDER BY actor LIMIT 1)
    UNION ALL
    SELECT (SELECT l.actor FROM audit_log l WHERE l.tenant_id = (SELECT rag_tenant()) AND l.actor > found.actor
            ORDER BY l.actor LIMIT 1)
    FROM found WHERE found.actor IS NOT NULL
)
SELECT actor FROM found WHERE actor IS NOT NULL ORDER BY actor
