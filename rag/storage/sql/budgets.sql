-- Budgets of a month and the amounts spent.

-- budget_states --
-- List budgets with the amounts spent this month: all of them, or one person's and their group's. The ledger books
-- drafts of opinions to the company; the drafts name their owners.
SELECT b.id, b.scope, b.user_group, b.account_id, coalesce(nullif(a.name, ''), a.email, '') AS person, b.amount,
       b.warn_share, b.ask_share,
       EXISTS (SELECT FROM budget_consents a WHERE a.budget_id = b.id AND a.account_id = %(for_account)s
                                                   AND a.month = %(month)s) AS has_agreed,
       coalesce(CASE b.scope
           WHEN 'company' THEN (SELECT sum(cost) FROM rag_cost_days(%(first)s, %(last)s, NULL, NULL, NULL, NULL))
           WHEN 'group' THEN (SELECT sum(cost) FROM (
               SELECT cost FROM rag_cost_days(%(first)s, %(last)s, NULL, b.user_group, NULL, NULL)
               UNION ALL SELECT o.cost FROM opinions o JOIN accounts m ON m.id = o.account_id
               WHERE m.user_group = b.user_group AND o.created_at >= %(start)s) AS paid)
           ELSE (SELECT sum(cost) FROM (
               SELECT c.cost FROM chat_logs l JOIN cost_ledger c ON c.chat_log_id = l.id
               WHERE l.account_id = b.account_id AND l.created_at >= %(start)s
               UNION ALL SELECT o.cost FROM opinions o
               WHERE o.account_id = b.account_id AND o.created_at >= %(start)s) AS paid)
       END, 0) AS spent, b.told_month
FROM budgets b LEFT JOIN accounts a ON a.id = b.account_id
WHERE %(for_all)s OR b.scope = 'company' OR b.account_id = %(for_account)s
      OR b.scope = 'group' AND b.user_group = %(for_group)s
ORDER BY array_position(ARRAY['company', 'group', 'person'], b.scope), b.user_group, person

-- set_budget --
-- Set a budget; the same scope again replaces it.
INSERT INTO budgets (tenant_id, scope, user_group, account_id, amount, warn_share, ask_share)
VALUES (rag_tenant(), %(scope)s, %(user_group)s, %(account_id)s, %(amount)s, %(warn_share)s, %(ask_share)s)
ON CONFLICT (tenant_id, scope, user_group, account_id) DO UPDATE
    SET amount = excluded.amount, warn_share = excluded.warn_share, ask_share = excluded.ask_share,
        -- Once another amount is reached, that is news.
        told_month = CASE WHEN budgets.amount = excluded.amount THEN budgets.told_month END

-- agree_to_budget --
-- Note that somebody agreed to go on past a budget this month.
INSERT INTO budget_consents (tenant_id, budget_id, account_id, month)
VALUES (rag_tenant(), %(budget_id)s, %(account_id)s, %(month)s)
ON CONFLICT DO NOTHING

-- remove_budget --
-- Remove a budget; return it to put back.
DELETE FROM budgets WHERE id = %(id)s RETURNING to_jsonb(budgets)::text

-- put_budget_back --
-- Keep a budget again, as it was.
INSERT INTO budgets SELECT * FROM jsonb_populate_record(NULL::budgets, %(kept)s::jsonb) RETURNING id

-- estimates_under_way --
-- Sum what the documents in progress are expected to cost and have not cost yet.
SELECT sum(greatest(0, (d.estimate ->> 'total')::numeric
                       - coalesce((SELECT sum(c.cost) FROM cost_ledger c WHERE c.document_id = d.id), 0)))
FROM documents d
WHERE d.tenant_id = rag_tenant() AND d.status = 'processing'

-- widget_is_spent --
-- Tell whether the budget of the widget that this key belongs to is spent this month; null for other keys.
SELECT coalesce((SELECT sum(q.cost) FROM conversations c JOIN chat_logs q ON q.conversation_id = c.id
                 WHERE c.api_key_id = w.api_key_id
                       AND q.created_at >= date_trunc('month', now(), (SELECT rag_zone()))), 0) >= w.budget
FROM widgets w WHERE w.api_key_id = %(api_key_id)s

-- tell_of_budget --
-- Note that a budget is spent, once a month; the table's trigger tells the webhooks.
UPDATE budgets SET told_month = %(month)s WHERE id = %(id)s AND told_month IS DISTINCT FROM %(month)s
