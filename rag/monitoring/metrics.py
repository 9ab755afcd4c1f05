"""Count events in this process, for Prometheus: requests, answers, paid calls, the queue, the database.

Each process has separate counters, and is scraped separately. No label has a value which a visitor can choose, or which
names a person, a tenant or a document.
"""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120)

requests = Histogram(
    "hr_request_seconds", "Requests until their first byte, by area and status.", ("area", "status"), buckets=SECONDS
)
first_text = Histogram("hr_first_text_seconds", "From a question to the first text of its answer.", buckets=SECONDS)
answers = Histogram(
    "hr_answer_seconds", "From a question to the end of its answer, by outcome.", ("outcome",), buckets=SECONDS
)
answers_under_way = Gauge("hr_answers_under_way", "Answers being written now.")
answers_waiting = Gauge("hr_answers_without_text", "Answers being written that have no text yet.")
answers_queued = Gauge("hr_answers_queued", "Questions that wait for their turn, because too many are being answered.")
paid_calls = Counter("hr_paid_calls", "Calls of providers in the ledger.", ("operation", "provider", "model"))
cost = Counter("hr_cost_dollars", "What those calls cost, where a price is known.", ("operation", "provider", "model"))
unpriced_calls = Counter("hr_unpriced_calls", "Calls without a known price.", ("operation", "provider", "model"))
database_up = Gauge("hr_database_up", "1 where the database answers.")
database_connections = Gauge("hr_database_connections", "Connections of the pool.", ("state",))
database_waiting = Gauge("hr_database_requests_waiting", "Who waits for a connection of the pool.")
jobs = Gauge("hr_jobs", "Jobs of all tenants that are not done.", ("queue", "state"))
