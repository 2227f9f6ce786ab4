"""Agents that found this editor by themselves: the endpoints of companions, and who comes to them.

Nothing here names an agent: what it is called, what it may ask and what it is told are the editor's business.
"""
