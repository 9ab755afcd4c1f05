-- Addresses that receive events, and the deliveries to them.

-- add_webhook --
-- Keep an address with its encrypted secret.
INSERT INTO webhooks (tenant_id, name, address, events, secret)
VALUES (rag_tenant(), %(name)s, %(address)s, %(events)s, %(secret)s)
RETURNING id

-- list_webhooks --
-- List the tenant's webhooks with the outcomes of the last week, the oldest first.
SELECT w.id, w.name, w.address, w.events, w.is_active, w.created_at,
       count(d.id) FILTER (WHERE d.status = 'delivered') AS delivered,
       count(d.id) FILTER (WHERE d.status = 'waiting') AS waiting,
       count(d.id) FILTER (WHERE d.status = 'failed') AS failed,
       max(d.finished_at) FILTER (WHERE d.status = 'delivered') AS last_delivered_at
FROM webhooks w
LEFT JOIN webhook_deliveries d ON d.webhook_id = w.id AND d.created_at > now() - interval '7 days'
WHERE w.tenant_id = (SELECT rag_tenant()) AND (%(webhook_id)s::uuid IS NULL OR w.id = %(webhook_id)s)
GROUP BY w.id
ORDER BY w.created_at, w.id

-- remove_webhook --
-- Remove an address and its deliveries; return both, of the deliveries the latest 200, to put back.
WITH removed AS (DELETE FROM webhooks WHERE id = %(webhook_id)s RETURNING *)
SELECT jsonb_build_object('webhook', to_jsonb(r), 'deliveries', coalesce(
    (SELECT jsonb_agg(to_jsonb(d)) FROM (SELECT * FROM webhook_deliveries WHERE webhook_id = r.id
                                         ORDER BY created_at DESC LIMIT 200) d), '[]'))::text
FROM removed r

-- put_webhook_back --
-- Keep an address and its deliveries again, as they were.
WITH kept AS (
    INSERT INTO webhooks SELECT * FROM jsonb_populate_record(NULL::webhooks, %(kept)s::jsonb -> 'webhook') RETURNING id
), told AS (
    INSERT INTO webhook_deliveries
    SELECT d.* FROM jsonb_populate_recordset(NULL::webhook_deliveries, %(kept)s::jsonb -> 'deliveries') d
)
SELECT id FROM kept

-- switch_webhook --
-- Tell an address of events again, or no longer.
UPDATE webhooks SET is_active = %(is_active)s WHERE id = %(webhook_id)s

-- webhook_deliveries --
-- List the deliveries of a webhook, the latest first.
SELECT id, webhook_id, kind, event_id, data, status, attempts, next_at, answer_status, answer, created_at, finished_at
FROM webhook_deliveries
WHERE tenant_id = (SELECT rag_tenant()) AND (%(webhook_id)s::uuid IS NULL OR webhook_id = %(webhook_id)s)
ORDER BY created_at DESC, id
LIMIT %(limit)s

-- delivery_to_make --
-- Read a delivery that waits, with its address and secret.
SELECT d.id, d.webhook_id, d.kind, d.event_id, d.data, d.created_at, d.attempts, w.address, w.secret
FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id AND w.is_active
WHERE d.id = %(delivery_id)s AND d.status = 'waiting'

-- note_delivery --
-- Store how an attempt ended.
UPDATE webhook_deliveries
SET status = %(status)s, attempts = attempts + 1, answer_status = %(answer_status)s, answer = %(answer)s,
    next_at = CASE WHEN %(status)s = 'waiting' THEN now() + make_interval(secs => %(wait_seconds)s) END,
    finished_at = CASE WHEN %(status)s <> 'waiting' THEN now() END
WHERE id = %(delivery_id)s

-- deliver_again --
-- Queue a delivery once more, with all its attempts, and return whether there is one.
WITH again AS (
    UPDATE webhook_deliveries SET status = 'waiting', attempts = 0, next_at = NULL, finished_at = NULL
    WHERE id = %(delivery_id)s RETURNING id
)
SELECT rag_queue_delivery(id, NULL) FROM again

-- forget_deliveries --
-- Remove deliveries older than thirty days.
DELETE FROM webhook_deliveries WHERE tenant_id = rag_tenant() AND created_at < now() - interval '30 days'
