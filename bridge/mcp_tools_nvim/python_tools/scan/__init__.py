"""The process that reads modules of tools, and what it describes them by."""
