-- create_tenant --
-- Add the tenant of this transaction unless it is there.
INSERT INTO tenants (id, name) VALUES (%(id)s, %(name)s)
ON CONFLICT (id) DO NOTHING;

-- prepare_alone --
-- Let one process at a time prepare a tenant; the lock ends with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('prepare ' || %(id)s::text, 0));

-- tenant_domains --
-- Read the domains of its people's e-mail addresses; none where any will do.
SELECT ARRAY(SELECT jsonb_array_elements_text(settings -> 'domains')) FROM tenants WHERE id = rag_tenant();

-- set_tenant_domains --
-- Name the domains of its people's e-mail addresses.
UPDATE tenants SET settings = settings || jsonb_build_object('domains', to_jsonb(%(domains)s::text[]))
WHERE id = rag_tenant();

-- has_accounts --
-- Tell whether anybody has an account yet.
SELECT EXISTS (SELECT FROM accounts);


-- tenant --
-- Read the tenant of this transaction.
SELECT id, name, created_at, suspended_at, ARRAY(SELECT jsonb_array_elements_text(settings -> 'domains')) AS domains
FROM tenants WHERE id = rag_tenant();

-- tenants --
-- List all tenants; the application sees only its own.
SELECT id, name, created_at, suspended_at, ARRAY(SELECT jsonb_array_elements_text(settings -> 'domains')) AS domains
FROM tenants ORDER BY id;

-- setup_progress --
-- Read how far a company's administrators have come with setting it up.
SELECT t.name,
       -- What a company is called until somebody names it comes from its id.
       coalesce((t.settings ->> 'is_named')::boolean, lower(t.name) NOT IN (t.id, replace(t.id, '-', ' '))) AS is_named,
       coalesce((t.settings ->> 'is_set_up')::boolean, false) AS is_finished,
       (SELECT count(*) FROM accounts WHERE is_active) AS people,
       EXISTS (SELECT FROM documents WHERE added_by IS NOT NULL AND status <> 'binned') AS has_documents,
       EXISTS (SELECT FROM chat_logs WHERE kind = 'question') AS has_questions
FROM tenants t WHERE t.id = rag_tenant()

-- rename_tenant --
-- Rename a company.
UPDATE tenants SET name = %(name)s, settings = settings || '{"is_named": true}' WHERE id = rag_tenant()

-- set_company_mark --
-- Set a company's mark as PNG; null removes it.
UPDATE tenants SET mark = %(mark)s WHERE id = rag_tenant()

-- company_mark --
-- Read the company's mark.
SELECT mark FROM tenants WHERE id = rag_tenant()

-- is_suspended --
-- Tell whether the tenant is suspended.
SELECT suspended_at IS NOT NULL FROM tenants WHERE id = rag_tenant();

-- suspend_tenant --
-- Suspend the tenant and end its sessions.
WITH ended AS (DELETE FROM sessions WHERE tenant_id = rag_tenant())
UPDATE tenants SET suspended_at = coalesce(suspended_at, now()) WHERE id = rag_tenant();

-- resume_tenant --
-- End a suspension.
UPDATE tenants SET suspended_at = NULL WHERE id = rag_tenant();

-- wake_jobs --
-- Make jobs that waited for another try due now.
UPDATE procrastinate_jobs SET scheduled_at = now()
WHERE args ->> 'tenant_id' = rag_tenant() AND status = 'todo' AND scheduled_at > now();

-- note_operator_act --
-- Note an operator's act on the tenant.
INSERT INTO audit_log (tenant_id, actor, action, target)
SELECT id, 'operator', %(action)s, name FROM tenants WHERE id = rag_tenant();

-- delete_tenant --
-- Delete the tenant; everything of it follows. As the owner: the application's role may not.
DELETE FROM tenants WHERE id = %(tenant_id)s;

-- enter_tenant --
-- Make the rest of a transaction of the owner a tenant's.
SELECT rag_enter(%(tenant_id)s);

-- delete_tenant_jobs --
-- List the jobs of a tenant that have not begun.
DELETE FROM procrastinate_jobs WHERE args ->> 'tenant_id' = %(tenant_id)s;

-- note_deletion --
-- Store the counts before and after a deletion.
INSERT INTO tenant_deletions (tenant_id, rows_before, rows_after, files_before, files_after)
VALUES (%(tenant_id)s, %(rows_before)s, %(rows_after)s, %(files_before)s, %(files_after)s);

-- tenant_tables --
-- List the tables that have a column tenant_id.
SELECT c.table_name::text
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.table_schema = 'public' AND c.column_name = 'tenant_id' AND t.table_type = 'BASE TABLE'
  AND c.table_name <> 'tenant_deletions'
ORDER BY c.table_name;

-- columns_of_table --
-- List the columns of a table in their order.
SELECT column_name::text FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = %(table)s ORDER BY ordinal_position;

-- tenant_name --
-- Read the company's name.
SELECT name FROM tenants WHERE id = rag_tenant();

-- letters --
-- Read which letters are sent, and from which role on people get each.
SELECT settings -> 'letters' FROM tenants WHERE id = rag_tenant();

-- nightly_collections --
-- Read the collections that are measured every night.
SELECT settings -> 'nightly_collections' FROM tenants WHERE id = rag_tenant();

-- people_to_write_to --
-- List the addresses of active people with these roles, with the languages they chose.
SELECT email, language FROM accounts WHERE is_active AND email <> '' AND role = ANY (%(roles)s) ORDER BY email;

-- claim_calendar_work --
-- Note that this is done for a day, unless somebody did since.
INSERT INTO calendar_work AS c (tenant_id, work, done_for) VALUES (rag_tenant(), %(work)s, %(day)s)
ON CONFLICT (tenant_id, work) DO UPDATE SET done_for = excluded.done_for WHERE c.done_for < excluded.done_for;

-- take_back_calendar_work --
-- Note that this is not done after all.
UPDATE calendar_work SET done_for = '-infinity' WHERE work = %(work)s;
