"""The running Neovims of this user: instance files, the choice of one, and the holder of a port."""
