"""The AI clients that can be connected: a file each, the only owner of what is known of that client.

A client's file has `CLIENT`; `registry.py` finds it by its name. Adding one edits nothing else.
"""
