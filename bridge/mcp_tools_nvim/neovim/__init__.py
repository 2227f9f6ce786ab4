"""The connection to Neovim over msgpack-RPC."""
