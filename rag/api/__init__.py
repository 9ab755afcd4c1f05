"""HTTP interface for programs and the pages of signing in."""
