"""Account for paid calls: price lists, prices, bills, budgets, and the ledger."""
