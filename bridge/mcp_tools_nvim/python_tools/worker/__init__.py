"""The process that runs tools written in Python."""
