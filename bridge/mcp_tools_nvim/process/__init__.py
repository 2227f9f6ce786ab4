"""The process of the bridge: environment, log, port, connection to Neovim, shutdown."""
