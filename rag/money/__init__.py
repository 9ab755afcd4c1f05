"""Account for money: price lists, the price of each call, budgets, and the ledger."""
