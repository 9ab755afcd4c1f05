"""The HTTP interface: the API for programs, and the sign-in pages."""
