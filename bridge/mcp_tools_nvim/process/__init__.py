"""The life of the process: environment, log, port, hello to the editor, serving, the end."""
