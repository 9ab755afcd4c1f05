-- record_charge --
-- Record one paid call; a collection that is gone is named no more.
INSERT INTO cost_ledger (
    tenant_id, operation, provider, model, input_tokens, cached_input_tokens, output_tokens, search_units, pages,
    unit_prices, cost, is_estimated, document_id, chat_log_id, collection_id
)
VALUES (
    %(tenant)s, %(operation)s, %(provider)s, %(model)s, %(input_tokens)s, %(cached_input_tokens)s, %(output_tokens)s,
    %(search_units)s, %(pages)s, %(unit_prices)s, %(cost)s, %(is_estimated)s, %(document_id)s,
    %(chat_log_id)s, (SELECT id FROM collections WHERE tenant_id = rag_tenant() AND id = %(collection_id)s)
)

-- record_charge_of_call --
-- Record a paid call that was begun, and remove what was written when it began. Where that is gone, its process was
-- taken for dead and its estimate was charged: nothing is charged twice.
WITH ended AS (
    DELETE FROM paid_calls WHERE tenant_id = rag_tenant() AND id = %(id)s RETURNING id
)
INSERT INTO cost_ledger (
    tenant_id, operation, provider, model, input_tokens, cached_input_tokens, output_tokens, search_units, pages,
    unit_prices, cost, is_estimated, document_id, chat_log_id
)
SELECT %(tenant)s, %(operation)s, %(provider)s, %(model)s, %(input_tokens)s, %(cached_input_tokens)s,
    %(output_tokens)s, %(search_units)s, %(pages)s, %(unit_prices)s, %(cost)s::numeric, %(is_estimated)s::boolean,
    %(document_id)s::uuid, %(chat_log_id)s::uuid
FROM ended

-- costs_of_document --
-- Sum the cost of processing one document by operation; null where the price of a call is not known.
SELECT operation, CASE WHEN bool_and(cost IS NOT NULL) THEN sum(cost) END AS cost
FROM cost_ledger
WHERE document_id = %(document_id)s AND chat_log_id IS NULL
GROUP BY operation

-- begin_paid_call --
-- Record a paid call before it is sent; a call that is already recorded is counted once more.
INSERT INTO paid_calls AS p (tenant_id, owner_id, operation, digest, expected, document_id, chat_log_id)
VALUES (rag_tenant(), %(owner_id)s, %(operation)s, %(digest)s, %(expected)s, %(document_id)s, %(chat_log_id)s)
ON CONFLICT (tenant_id, owner_id, operation, digest) DO UPDATE
    SET sent = p.sent + 1, unsettled = p.unsettled + 1, expected = excluded.expected, sent_at = clock_timestamp()
RETURNING id, sent, unsettled

-- begin_call_of_question --
-- Begin a paid call as `begin_paid_call` does, without waiting for the disk when it is alone: somebody waits for the
-- answer, and what a killed process leaves behind does not need it.
INSERT INTO paid_calls (tenant_id, owner_id, operation, digest, expected, chat_log_id)
SELECT rag_tenant(), %(chat_log_id)s, %(operation)s, %(digest)s, %(expected)s, %(chat_log_id)s
FROM set_config(
    'synchronous_commit', CASE WHEN %(is_alone)s THEN 'off' ELSE current_setting('synchronous_commit') END, true
)
ON CONFLICT (tenant_id, owner_id, operation, digest) DO UPDATE
    SET expected = excluded.expected, sent_at = clock_timestamp()
RETURNING id

-- resend_paid_call --
-- Count that a call is sent again after a failure that is accounted for.
UPDATE paid_calls SET unsettled = 1, sent_at = clock_timestamp() WHERE tenant_id = rag_tenant() AND id = %(id)s

-- account_for_paid_call --
-- Store how many attempts of a call have an unknown outcome; the row keeps the call's key.
UPDATE paid_calls SET unsettled = %(unsettled)s WHERE tenant_id = rag_tenant() AND id = %(id)s

-- finish_paid_call --
-- Remove a call whose result is stored, or that was refused.
DELETE FROM paid_calls WHERE tenant_id = rag_tenant() AND id = %(id)s

-- take_abandoned_calls --
-- Take calls for documents and collections that nobody waits for any more, because the process that sent them is gone.
-- Kept keys of calls that were accounted for are removed after a day.
DELETE FROM paid_calls p
WHERE p.tenant_id = rag_tenant() AND p.chat_log_id IS NULL
  AND CASE
      WHEN p.sent_at < now() - make_interval(secs => %(quiet_seconds)s)
           AND (p.unsettled > 0 OR p.sent_at < now() - interval '1 day')
      THEN pg_try_advisory_xact_lock(hashtextextended('document ' || p.owner_id::text, 0))
      ELSE false
  END
RETURNING p.operation, p.unsettled, p.expected, p.document_id,
          CASE WHEN p.document_id IS NULL THEN p.owner_id END

-- take_calls_of_questions --
-- Take over open calls for questions whose process is gone, with the text of the answer so far; and calls that were
-- made after a question had ended, such as to judge its answer, and that nobody waits for any more.
DELETE FROM paid_calls p
WHERE p.tenant_id = rag_tenant()
  AND (p.chat_log_id = ANY (%(chat_log_ids)s::uuid[])
       OR (p.chat_log_id IS NOT NULL
           AND p.sent_at < clock_timestamp() - %(quiet_seconds)s * interval '1 second'
           AND NOT EXISTS (SELECT FROM chat_logs l WHERE l.id = p.chat_log_id AND l.outcome IS NULL)))
RETURNING p.chat_log_id, p.operation, p.digest, p.expected,
          coalesce((SELECT m.content FROM messages m WHERE m.chat_log_id = p.chat_log_id LIMIT 1), '') AS written

-- count_costs_of_questions --
-- Write the ledger's sums to the rows of questions.
UPDATE chat_logs l
SET cost = coalesce((SELECT sum(c.cost) FROM cost_ledger c WHERE c.chat_log_id = l.id), 0),
    is_priced = NOT EXISTS (SELECT FROM cost_ledger c WHERE c.chat_log_id = l.id AND c.cost IS NULL)
WHERE l.tenant_id = rag_tenant() AND l.id = ANY (%(chat_log_ids)s::uuid[])

-- tenant_prices --
-- Read the tenant's own prices in force today, as JSON by model and unit.
SELECT coalesce(jsonb_object_agg(model, prices), '{}')
FROM (
    SELECT model, jsonb_object_agg(unit, price::text) AS prices
    FROM (
        SELECT DISTINCT ON (model, unit) model, unit, price FROM tenant_prices
        WHERE tenant_id = rag_tenant() AND valid_from <= (now() AT TIME ZONE 'UTC')::date
        ORDER BY model, unit, valid_from DESC, id DESC
    ) latest
    WHERE price IS NOT NULL
    GROUP BY model
) own

-- tenant_price_changes --
-- List every own price of the tenant by model and unit, the one in force first.
SELECT model, unit, price, valid_from, created_at FROM tenant_prices
WHERE tenant_id = rag_tenant()
ORDER BY model, unit, valid_from DESC, id DESC

-- add_tenant_price --
-- Add an own price from a day on; null returns to the listed one.
INSERT INTO tenant_prices (tenant_id, model, unit, price, valid_from)
VALUES (rag_tenant(), %(model)s, %(unit)s, %(price)s, %(valid_from)s)

-- models_in_use --
-- List models that the tenant was charged for in the last three months, or whose vectors a collection has.
SELECT provider, model FROM cost_ledger WHERE tenant_id = rag_tenant() AND created_at > now() - interval '92 days'
UNION
SELECT split_part(embedding_model, '/', 1), regexp_replace(embedding_model, '^[^/]*/(.*)@[^@]*$', '\1')
FROM collections WHERE tenant_id = rag_tenant()
ORDER BY 1, 2
