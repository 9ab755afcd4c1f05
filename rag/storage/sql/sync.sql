-- Collections that follow a source: its place, the known state of each item, and the runs that compare both.

-- find_sources --
-- List the sources of one collection, or of all.
SELECT collection_id, kind, settings, secrets, every_minutes, next_sync_at FROM collection_sources
WHERE tenant_id = rag_tenant() AND (%(collection_id)s::uuid IS NULL OR collection_id = %(collection_id)s)
ORDER BY created_at, kind

-- set_source --
-- Store where a collection's documents come from.
INSERT INTO collection_sources (collection_id, kind, tenant_id, settings, secrets)
VALUES (%(collection_id)s, %(kind)s, rag_tenant(), %(settings)s, %(secrets)s)
ON CONFLICT (collection_id, kind) DO UPDATE
SET settings = excluded.settings, secrets = excluded.secrets, state = '{}'

-- source_state --
-- Read what a source kept of its last sync.
SELECT state FROM collection_sources
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND kind = %(kind)s

-- keep_source_state --
-- Store what a source needs to ask only for changes at its next sync.
UPDATE collection_sources SET state = %(state)s
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND kind = %(kind)s

-- drop_source --
-- Stop following a source; the documents that came from it stay.
DELETE FROM collection_sources
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND kind = %(kind)s

-- known_items --
-- Read the known state of a source's items, and whether their documents still exist.
SELECT i.key, i.source_updated_at AS updated_at, i.hash, i.is_deleted, i.original_id,
       EXISTS (SELECT FROM documents d WHERE d.original_id = i.original_id) AS has_document
FROM sync_items i
WHERE i.tenant_id = rag_tenant() AND i.collection_id = %(collection_id)s AND i.kind = %(kind)s
  AND (%(key)s::text IS NULL OR i.key = %(key)s)

-- find_same_content --
-- Find a document of the collection with these bytes that did not come from this kind of source.
SELECT d.id, d.title FROM (
    SELECT id FROM documents WHERE tenant_id = rag_tenant() AND file_path = %(file_path)s
    UNION SELECT id FROM documents WHERE collection_id = %(collection_id)s AND metadata ? 'contentHash'
        AND metadata ->> 'contentHash' = %(digest)s
) AS same JOIN documents d ON d.id = same.id
WHERE d.tenant_id = rag_tenant() AND d.collection_id = %(collection_id)s AND d.status NOT IN ('superseded', 'binned')
  AND (%(kind)s::text IS NULL AND d.sync_key IS NOT NULL
       OR %(kind)s::text IS NOT NULL AND NOT EXISTS (
           SELECT FROM sync_items i
           WHERE i.collection_id = d.collection_id AND i.original_id = d.original_id AND i.kind = %(kind)s))
ORDER BY d.created_at LIMIT 1

-- add_synced_document --
-- Add the next version of an item's document, or its first; it is read without being confirmed.
INSERT INTO documents (tenant_id, collection_id, title, file_name, file_path, file_size, mime_type, sha256, status, step,
                       steps_total, page_count, chunking_method, generate_metadata, metadata, original_id, version,
                       sync_key)
SELECT rag_tenant(), %(collection_id)s, %(title)s, %(file_name)s, %(file_path)s, %(file_size)s, %(mime_type)s,
       %(sha256)s, 'reading', 'extract', 1, 1, %(chunking_method)s, %(generate_metadata)s, %(metadata)s,
       known.original_id, coalesce(known.version, 0) + 1, %(key)s
FROM (SELECT) AS one
LEFT JOIN LATERAL (
    SELECT d.original_id, max(d.version) AS version FROM documents d
    WHERE d.tenant_id = rag_tenant() AND d.original_id = %(original_id)s GROUP BY d.original_id
) AS known ON true
RETURNING id, original_id

-- carry_attachment_texts --
-- Copy what earlier versions know of their attachments to the new one.
INSERT INTO attachment_texts (document_id, sha256, tenant_id, kind, text, note)
SELECT DISTINCT ON (a.sha256) %(document_id)s, a.sha256, rag_tenant(), a.kind, a.text, a.note
FROM attachment_texts a JOIN documents d ON d.id = a.document_id
WHERE a.tenant_id = rag_tenant() AND d.original_id = %(original_id)s AND d.id <> %(document_id)s
ORDER BY a.sha256, a.created_at DESC
ON CONFLICT DO NOTHING

-- remove_earlier_versions --
-- Remove unpublished versions of a synced document: those overtaken during the work, and superseded ones.
DELETE FROM documents
WHERE tenant_id = rag_tenant() AND original_id = %(original_id)s AND id <> %(document_id)s AND status NOT IN ('completed', 'binned')
RETURNING id, file_path

-- remove_synced_document --
-- Delete the document, with all versions, of a thing that is gone from its source.
DELETE FROM documents WHERE tenant_id = rag_tenant() AND original_id = %(original_id)s
RETURNING id, file_path

-- note_item --
-- Store the state of a thing; events that came with this state or before it are done.
INSERT INTO sync_items AS i (collection_id, kind, key, tenant_id, original_id, source_updated_at, hash, title, is_deleted,
                             problem, synced_at)
VALUES (%(collection_id)s, %(kind)s, %(key)s, rag_tenant(), %(original_id)s, %(updated_at)s, %(hash)s, %(title)s,
        %(is_deleted)s, '', now())
ON CONFLICT (collection_id, kind, key) DO UPDATE
SET original_id = excluded.original_id, hash = excluded.hash, title = excluded.title,
    source_updated_at = coalesce(excluded.source_updated_at, i.source_updated_at),
    is_deleted = excluded.is_deleted, problem = '', synced_at = now()

-- note_item_problem --
-- Store why a thing could not be read; the next sync tries it again.
INSERT INTO sync_items (collection_id, kind, key, tenant_id, title, problem)
VALUES (%(collection_id)s, %(kind)s, %(key)s, rag_tenant(), %(title)s, %(problem)s)
ON CONFLICT (collection_id, kind, key) DO UPDATE SET problem = excluded.problem

-- renew_metadata --
-- Update what changed about a document besides its text: pins, views, dates; no row when nothing did. Overtaken
-- versions stay as they were.
UPDATE documents SET metadata = metadata || %(metadata)s, updated_at = now()
WHERE tenant_id = rag_tenant() AND original_id = %(original_id)s AND status NOT IN ('superseded', 'binned')
  AND NOT metadata @> %(metadata)s

-- Runs

-- ask_for_run --
-- Add a run that compares source and collection, unless one waits already.
INSERT INTO sync_runs (collection_id, kind, tenant_id, asked_by)
VALUES (%(collection_id)s, %(kind)s, rag_tenant(), %(asked_by)s)
ON CONFLICT (collection_id, kind) WHERE status = 'waiting' DO UPDATE SET asked_by = sync_runs.asked_by
RETURNING id

-- find_runs --
-- List runs of a collection, the latest first; the cost of a run is that of the collection's documents until the next
-- run, with the requests that they share.
SELECT r.id, r.collection_id, r.kind, r.status, r.items_done, r.items_total, r.added, r.updated, r.unchanged, r.removed,
       r.failed, r.message, r.asked_by, r.created_at, r.started_at, r.finished_at,
       paid.cost, coalesce(paid.is_priced, true) AS is_priced
FROM (
    SELECT *, lead(started_at) OVER (PARTITION BY collection_id ORDER BY created_at) AS next_started_at
    FROM sync_runs WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s
) AS r
LEFT JOIN LATERAL (
    SELECT sum(l.cost) AS cost, bool_and(l.cost IS NOT NULL) AS is_priced
    FROM cost_ledger l LEFT JOIN documents d ON d.id = l.document_id
    WHERE l.tenant_id = rag_tenant() AND l.collection_id = r.collection_id
      AND (d.sync_key IS NOT NULL OR l.document_id IS NULL AND l.chat_log_id IS NULL AND l.operation = 'embedding')
      AND l.created_at >= r.started_at AND (r.next_started_at IS NULL OR l.created_at < r.next_started_at)
) AS paid ON true
WHERE %(run_id)s::uuid IS NULL OR r.id = %(run_id)s
ORDER BY r.created_at DESC
LIMIT %(limit)s

-- runs_to_do --
-- List the runs that wait, and those that a dead process left.
SELECT id, kind FROM sync_runs
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND status IN ('waiting', 'running')
ORDER BY created_at

-- begin_run --
-- Begin a run, from the start even after a kill: finished items are then found unchanged.
UPDATE sync_runs SET status = 'running', started_at = coalesce(started_at, now()), items_done = 0
WHERE tenant_id = rag_tenant() AND id = %(run_id)s

-- note_run --
-- Store how far a run has come.
UPDATE sync_runs SET items_done = %(items_done)s, items_total = %(items_total)s
WHERE tenant_id = rag_tenant() AND id = %(run_id)s

-- note_run_trouble --
-- Store why a run waits for another try.
UPDATE sync_runs SET message = %(message)s WHERE tenant_id = rag_tenant() AND id = %(run_id)s

-- end_run --
-- Store what a run found. The total was only a guess until now, and too large where posts are hidden.
UPDATE sync_runs
SET status = %(status)s, message = %(message)s, added = %(added)s, updated = %(updated)s, unchanged = %(unchanged)s,
    removed = %(removed)s, failed = %(failed)s, finished_at = now(), items_done = %(items_done)s,
    items_total = CASE WHEN %(status)s = 'done' THEN %(items_done)s ELSE greatest(items_total, %(items_done)s) END
WHERE tenant_id = rag_tenant() AND id = %(run_id)s

-- enqueue_sync --
-- Queue a run; a collection has one waiting job at most.
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args)
VALUES ('documents', 'sync', 'sync ' || %(collection_id)s::text, 'sync ' || %(collection_id)s::text,
        jsonb_build_object('tenant_id', rag_tenant(), 'collection_id', %(collection_id)s::text))
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO NOTHING

-- Schedules

-- set_schedule --
-- Set how often a source is compared without being asked; null: only on request.
INSERT INTO collection_sources (collection_id, kind, tenant_id, every_minutes, next_sync_at)
VALUES (%(collection_id)s, %(kind)s, rag_tenant(), %(every_minutes)s,
        now() + make_interval(mins => %(every_minutes)s::integer))
ON CONFLICT (collection_id, kind) DO UPDATE
SET every_minutes = excluded.every_minutes, next_sync_at = excluded.next_sync_at

-- enqueue_schedule --
-- Queue the next comparison of a collection, due with the first of its sources.
INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, scheduled_at)
SELECT 'documents', 'sync_on_schedule', 'schedule ' || collection_id, 'schedule ' || collection_id,
       jsonb_build_object('tenant_id', rag_tenant(), 'collection_id', collection_id::text), min(next_sync_at)
FROM collection_sources
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND next_sync_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM collections l WHERE l.id = collection_sources.collection_id AND l.binned_at IS NOT NULL)
GROUP BY collection_id
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO UPDATE SET scheduled_at = excluded.scheduled_at

-- ask_for_due_runs --
-- Queue a run for each source that is due, unless one is under way. One run makes up for all missed times.
WITH due AS (
    UPDATE collection_sources
    SET next_sync_at = next_sync_at + make_interval(mins => every_minutes)
        * (floor(extract(epoch FROM now() - next_sync_at) / (60 * every_minutes)) + 1)
    WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND next_sync_at <= now()
      AND NOT EXISTS (SELECT FROM collections l WHERE l.id = collection_sources.collection_id AND l.binned_at IS NOT NULL)
    RETURNING kind
), asked AS (
    INSERT INTO sync_runs (collection_id, kind, tenant_id, asked_by)
    SELECT %(collection_id)s, due.kind, rag_tenant(), %(asked_by)s FROM due
    WHERE NOT EXISTS (
        SELECT FROM sync_runs r
        WHERE r.tenant_id = rag_tenant() AND r.collection_id = %(collection_id)s AND r.kind = due.kind
          AND r.status IN ('waiting', 'running'))
    ON CONFLICT (collection_id, kind) WHERE status = 'waiting' DO NOTHING
)
SELECT kind FROM due

-- schedules_without_job --
-- List collections whose job was lost, such as one that failed.
SELECT DISTINCT s.collection_id FROM collection_sources s
WHERE s.tenant_id = rag_tenant() AND s.next_sync_at IS NOT NULL
  AND NOT EXISTS (SELECT FROM collections l WHERE l.id = s.collection_id AND l.binned_at IS NOT NULL)
  AND NOT EXISTS (SELECT FROM procrastinate_jobs j
                  WHERE j.lock = 'schedule ' || s.collection_id AND j.status IN ('todo', 'doing'))

-- Events

-- note_event --
-- Store the newest event of an item; an older one, or one that says nothing new, changes nothing and gives no row. A
-- deletion carries the time of the last change before it, so that it wins over that change.
INSERT INTO sync_items AS i (collection_id, kind, key, tenant_id, title, event, event_at)
VALUES (%(collection_id)s, %(kind)s, %(key)s, rag_tenant(), %(title)s, %(event)s, %(event_at)s)
ON CONFLICT (collection_id, kind, key) DO UPDATE SET event = excluded.event, event_at = excluded.event_at
WHERE (i.event_at IS NULL OR i.event_at < excluded.event_at
       OR i.event_at = excluded.event_at AND %(is_deletion)s AND i.event IS DISTINCT FROM excluded.event)
  AND (i.source_updated_at IS NULL OR i.source_updated_at < excluded.event_at
       OR i.source_updated_at = excluded.event_at AND %(is_deletion)s AND NOT i.is_deleted)
RETURNING i.key

-- waiting_events --
-- List the things that have an event to follow.
SELECT key, event, event_at FROM sync_items
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND kind = %(kind)s AND event IS NOT NULL
ORDER BY event_at, key
LIMIT 500

-- finish_event --
-- Note that an event was followed, unless a newer one has come meanwhile.
UPDATE sync_items SET event = NULL
WHERE tenant_id = rag_tenant() AND collection_id = %(collection_id)s AND kind = %(kind)s AND key = %(key)s
  AND event_at IS NOT DISTINCT FROM %(event_at)s AND event IS NOT DISTINCT FROM %(event)s

-- Attachments

-- attachment_texts --
-- Read the known state of a document's attachments.
SELECT sha256, kind, text, note FROM attachment_texts
WHERE tenant_id = rag_tenant() AND document_id = %(document_id)s

-- note_attachment_text --
-- Store a model's description of an attachment.
INSERT INTO attachment_texts (document_id, sha256, tenant_id, kind, text, note)
VALUES (%(document_id)s, %(sha256)s, rag_tenant(), %(kind)s, %(text)s, %(note)s)
ON CONFLICT (document_id, sha256) DO UPDATE SET text = excluded.text, note = excluded.note
