"""Connections to other companies' products.

Each integration is a folder, found by `registry`. The core never imports an integration and works without any.
"""
