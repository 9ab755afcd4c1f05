"""Question logs, conversations, feedback, analytics and the audit log."""
