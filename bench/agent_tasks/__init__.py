"""Twenty tasks of agents: a skilled one with a shell, and one with our tools."""
