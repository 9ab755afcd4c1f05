"""Money: prices, the price of each call, and the ledger."""
