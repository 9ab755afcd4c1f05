"""Engines which run models on this machine, without a key."""
