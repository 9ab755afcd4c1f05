"""Money: what each call costs, at which prices, and the ledger that keeps it."""
