"""Process untrusted input in processes which can reach nothing."""
