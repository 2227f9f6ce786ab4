"""Clients of the session era, over whatever they speak: identifiers, one session, all of them."""
