"""`python -m bridge.cli`: the command without its script."""

from .main import script

if __name__ == "__main__":
    script()
