-- Drafts of opinions. Row-level security applies to every statement; only its owner sees a draft.

-- begin_opinion --
-- Add a draft before its first word.
INSERT INTO opinions (tenant_id, collection_id, account_id, api_key_id, opinion_type, facts, instructions, query,
                      citations, model)
SELECT rag_tenant(), %(collection_id)s, a.id, CASE WHEN a.id IS NULL THEN %(owner_id)s::uuid END, %(opinion_type)s,
       %(facts)s, %(instructions)s, %(query)s, %(citations)s, %(model)s
FROM (SELECT 1) AS one LEFT JOIN accounts a ON a.id = %(owner_id)s
RETURNING id

-- end_opinion --
-- Store the text of a draft, and the numbers by which it cites its passages.
UPDATE opinions o SET content = CASE WHEN deleted_at IS NULL THEN %(content)s ELSE '' END, state = %(state)s,
    message = %(message)s, cost = %(cost)s,
    citations = coalesce(
        (SELECT jsonb_agg(c || jsonb_build_object('cited', %(shown)s::jsonb -> (c ->> 'number')) ORDER BY place)
         FROM jsonb_array_elements(o.citations) WITH ORDINALITY AS given (c, place)), '[]')
WHERE tenant_id = rag_tenant() AND id = %(id)s

-- find_opinions --
-- List a person's drafts, newest first.
SELECT id, collection_id, opinion_type, facts, instructions, query, citations, content,
       CASE WHEN state = 'writing' AND created_at < now() - interval '15 minutes' THEN 'cut' ELSE state END AS state,
       message, model, cost, created_at
FROM opinions
WHERE tenant_id = rag_tenant() AND owner_id = %(owner_id)s AND (%(id)s::uuid IS NULL OR id = %(id)s)
  AND deleted_at IS NULL
ORDER BY created_at DESC, id
LIMIT %(limit)s OFFSET %(offset)s

-- count_opinions --
-- Count a person's drafts.
SELECT count(*) FROM opinions WHERE tenant_id = rag_tenant() AND owner_id = %(owner_id)s AND deleted_at IS NULL

-- delete_opinion --
-- Erase the texts of a person's own draft; return them to put back. What it cost still counts for the month's budgets.
WITH kept AS (
    SELECT id, opinion_type, facts, instructions, query, citations, content, message FROM opinions
    WHERE tenant_id = rag_tenant() AND owner_id = %(owner_id)s AND id = %(id)s AND deleted_at IS NULL
    FOR UPDATE
)
UPDATE opinions o
SET deleted_at = now(), opinion_type = '', facts = '', instructions = '', query = '', citations = '[]', content = '', message = ''
FROM kept
WHERE o.tenant_id = rag_tenant() AND o.id = kept.id
RETURNING to_jsonb(kept)::text

-- put_opinion_back --
-- Keep the texts of a deleted draft again, without what it was given of documents that are gone since.
UPDATE opinions o
SET deleted_at = NULL, opinion_type = kept.opinion_type, facts = kept.facts, instructions = kept.instructions,
    query = kept.query, citations = coalesce(
        (SELECT jsonb_agg(c ORDER BY place) FROM jsonb_array_elements(kept.citations) WITH ORDINALITY AS given (c, place)
         WHERE EXISTS (SELECT FROM documents d WHERE d.id = (c ->> 'document_id')::uuid)), '[]'),
    content = kept.content, message = kept.message
FROM jsonb_populate_record(NULL::opinions, %(kept)s::jsonb) AS kept
WHERE o.tenant_id = rag_tenant() AND o.id = kept.id AND o.deleted_at IS NOT NULL
RETURNING o.id
