"""Agents that found this editor by themselves: the doors of companions, and who comes in by them.

Nothing here names an agent: what it is called, what it may ask and what it is told are the editor's business.
"""
