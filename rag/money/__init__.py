"""Keep account of money: prices, the price of each call, budgets, and the ledger."""
