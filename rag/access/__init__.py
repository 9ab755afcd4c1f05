"""Authentication and access control: accounts, sessions, API keys, single sign-on, tenants and limits."""
