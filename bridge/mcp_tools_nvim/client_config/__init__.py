"""Configuration files of AI clients: the clients that are known, file formats, safe changes."""
