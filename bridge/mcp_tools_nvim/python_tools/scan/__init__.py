"""The process that reads modules with tools and describes them."""
