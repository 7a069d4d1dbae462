"""Asks the API server who a token is and what they may; remembers it for ten seconds."""

import hashlib
import threading
from typing import Any, Protocol

from driver import clock
from driver.controller.web.auth import rules
from driver.kube import gvr

CACHE_S = 10.0
_MOST = 1024
TOKEN_REVIEWS = gvr.Resource("authentication.k8s.io", "v1", "tokenreviews", namespaced=False)
ACCESS_REVIEWS = gvr.Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", namespaced=False
)


class Api(Protocol):
    """What is used of the API server."""

    def create(self, resource: gvr.Resource, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object; the object as the server answered it. Raises ApiError."""
        ...


class TokenReviewer:
    """The verdict on each token. Thread safe; no token is kept, only its digest."""

    def __init__(self, api: Api, time: clock.Clock) -> None:
        self._api = api
        self._clock = time
        self._lock = threading.Lock()
        self._known: dict[bytes, tuple[float, rules.Verdict]] = {}

    def verdict(self, token: str) -> rules.Verdict:
        """Whether its bearer may read. Raises ApiError where the API server cannot be asked."""
        if not token:
            return rules.NO_TOKEN
        digest = hashlib.sha256(token.encode()).digest()
        now = self._clock.monotonic()
        with self._lock:
            found = self._known.get(digest)
        if found is not None and now - found[0] < CACHE_S:
            return found[1]
        made = self._ask(token)
        with self._lock:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[digest] = now, made
        return made

    def _ask(self, token: str) -> rules.Verdict:
        user = rules.identity(self._api.create(TOKEN_REVIEWS, rules.token_review(token)))
        asked = rules.access_reviews(user) if user is not None else ()
        return rules.verdict(user, [self._api.create(ACCESS_REVIEWS, one) for one in asked])
