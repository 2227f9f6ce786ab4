"""Twenty tasks for two agents: a skilled one with a shell, and one with our tools."""
