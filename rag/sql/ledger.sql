-- record_charge --
-- One paid call.
INSERT INTO cost_ledger (
    tenant_id, operation, provider, model, input_tokens, cached_input_tokens, output_tokens, search_units, pages,
    unit_prices, cost, document_id, chat_log_id
)
VALUES (
    %(tenant)s, %(operation)s, %(provider)s, %(model)s, %(input_tokens)s, %(cached_input_tokens)s, %(output_tokens)s,
    %(search_units)s, %(pages)s, %(unit_prices)s, %(cost)s, %(document_id)s, %(chat_log_id)s
)

-- costs_of_document --
-- Cost by operation of one document's processing; null where the price of a call is not known.
SELECT operation, CASE WHEN bool_and(cost IS NOT NULL) THEN sum(cost) END AS cost
FROM cost_ledger
WHERE document_id = %(document_id)s AND chat_log_id IS NULL
GROUP BY operation
