"""Run untrusted input in processes that can reach nothing."""
