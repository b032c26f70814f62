"""What a client is known by: nonces, derived from one secret."""

from __future__ import annotations

import hashlib
import hmac
import secrets

LEAST_BYTES = 16
NONCE_BYTES = 16


class Secret:
    """The secret of a client. Who has the same one is the same client to the daemon: a later process of an application's."""

    def __init__(self, secret: bytes | None = None) -> None:
        """`None`: one that nobody else has."""
        if secret is not None and len(secret) < LEAST_BYTES:
            raise ValueError(f"a secret has {LEAST_BYTES} bytes or more, not {len(secret)}")
        self._secret = secrets.token_bytes(32) if secret is None else bytes(secret)

    def nonce(self, application_id: str) -> bytes:
        """The first bytes of HMAC-SHA256 of the id under the secret, as every language's client has it."""
        return hmac.new(self._secret, application_id.encode(), hashlib.sha256).digest()[:NONCE_BYTES]

    def __repr__(self) -> str:
        return "Secret(...)"
