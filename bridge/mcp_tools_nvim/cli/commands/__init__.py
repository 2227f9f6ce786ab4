"""The subcommands: each file has `add` (its arguments) and `run` (what it does, gives the exit code)."""
