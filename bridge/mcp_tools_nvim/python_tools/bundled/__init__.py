"""Bundled tools written in Python."""
