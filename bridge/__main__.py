"""`python -m bridge`: the process that Neovim starts."""

from __future__ import annotations

from .process.main import main

if __name__ == "__main__":
    main()
