-- Corrections that estimates learn from bills.

-- estimate_correction --
-- Compare estimates with bills, for the tenant's latest documents that were embedded or tagged with these models:
-- tokens counted by the provider for each token estimated, and tokens of a tagging call's answer in this collection,
-- else in others of its profile, which ask for the same. Deviations are standard deviations of these ratios over the
-- documents, as a share of their mean. Null where nothing is known yet, a deviation also for a single document.
WITH latest AS (
    SELECT d.id, d.collection_id = %(collection_id)s AS is_own,
           c.profile = (SELECT own.profile FROM collections own WHERE own.id = %(collection_id)s) AS is_alike, (d.estimate ->> 'embedding_tokens')::numeric AS embedding_tokens,
           (d.estimate ->> 'tagging_tokens')::numeric AS tagging_tokens
    FROM documents d JOIN collections c ON c.id = d.collection_id
    WHERE d.tenant_id = rag_tenant() AND d.status IN ('completed', 'superseded') AND d.estimate ? 'embedding_tokens'
    ORDER BY d.published_at DESC
    LIMIT 50
),
billed AS (
    SELECT n.id, n.is_own, n.is_alike, n.embedding_tokens, n.tagging_tokens,
           sum(l.input_tokens) FILTER (WHERE l.operation IN ('embedding', 'chunking') AND l.model = %(embedding_model)s) AS embedded,
           sum(l.input_tokens) FILTER (WHERE l.operation = 'tagging' AND l.model = %(tagging_model)s) AS tagged,
           sum(l.output_tokens) FILTER (WHERE l.operation = 'tagging' AND l.model = %(tagging_model)s) AS written,
           count(*) FILTER (WHERE l.operation = 'tagging' AND l.model = %(tagging_model)s) AS answers
    FROM latest n JOIN cost_ledger l ON l.tenant_id = rag_tenant() AND l.document_id = n.id AND NOT l.is_estimated
    GROUP BY 1, 2, 3, 4, 5
)
SELECT sum(embedded) / nullif(sum(embedding_tokens) FILTER (WHERE embedded > 0), 0) AS embedding_ratio,
       sum(tagged) / nullif(sum(tagging_tokens) FILTER (WHERE tagged > 0), 0) AS tagging_ratio,
       coalesce(sum(written) FILTER (WHERE is_own) / nullif(sum(answers) FILTER (WHERE is_own), 0),
                sum(written) FILTER (WHERE is_alike) / nullif(sum(answers) FILTER (WHERE is_alike), 0)) AS answer_tokens,
       stddev_samp(embedded / nullif(embedding_tokens, 0)) / nullif(avg(embedded / nullif(embedding_tokens, 0)), 0)
           AS embedding_deviation,
       stddev_samp(tagged / nullif(tagging_tokens, 0)) / nullif(avg(tagged / nullif(tagging_tokens, 0)), 0)
           AS tagging_deviation,
       stddev_samp(written / nullif(answers, 0)) FILTER (WHERE is_own OR is_alike)
           / nullif(avg(written / nullif(answers, 0)) FILTER (WHERE is_own OR is_alike), 0) AS answer_deviation
FROM billed
