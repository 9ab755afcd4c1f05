-- Events for other programs.

-- emit_event --
-- Tell every webhook that wants this kind of event, or one alone.
SELECT rag_emit(%(kind)s, %(data)s, %(webhook_id)s)
