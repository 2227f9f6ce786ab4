"""Which editors there are, which one of them is meant, and who holds a port."""
