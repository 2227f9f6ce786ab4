"""The tools written in Python that the plugin brings along."""
