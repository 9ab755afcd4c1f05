"""Connect the product to other companies' products.

Each integration is a folder, which `registry` finds. The core never imports an integration and works without any.
"""
