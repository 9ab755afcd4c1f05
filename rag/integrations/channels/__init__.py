"""Channels in which people ask questions outside the product's pages."""
