"""Servers that answer questions about code, asked the same of the same project: ours, others', the floor."""
