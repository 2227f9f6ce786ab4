"""Calling the tools of a running editor from a Python program: straight to Neovim, without a bridge."""
