"""One module for each kind of figure, with one function that measures and returns its rows."""
