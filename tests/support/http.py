"""HTTP clients for the SDK: loopback needs no certificates, and loading them costs more than most tests."""

from __future__ import annotations

import httpx2


def http_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | float | None = 60,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    """A client, in the shape of the SDK's `httpx_client_factory`."""
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, verify=False, trust_env=False)
