"""One module per kind of figure; each has one function that measures and returns its rows."""
