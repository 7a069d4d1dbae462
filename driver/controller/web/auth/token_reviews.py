"""Reviews tokens by the API server; verdicts are cached for ten seconds."""

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
    """Operations used of the API server."""

    def create(self, resource: gvr.Resource, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object; the object as the server answered it. Raises ApiError."""
        ...


class TokenReviewer:
    """Verdict for each token. Thread safe; stores digests, no tokens."""

    def __init__(self, api: Api, time: clock.Clock) -> None:
        self._api = api
        self._clock = time
        self._lock = threading.Lock()
        self._verdicts: dict[bytes, tuple[float, rules.Verdict]] = {}

    def verdict(self, token: str) -> rules.Verdict:
        """Return whether the token's user may read. Raises ApiError if the API server fails."""
        if not token:
            return rules.NO_TOKEN
        digest = hashlib.sha256(token.encode()).digest()
        now = self._clock.monotonic()
        with self._lock:
            cached = self._verdicts.get(digest)
        if cached is not None and now - cached[0] < CACHE_S:
            return cached[1]
        answer = self._review(token)
        with self._lock:
            if len(self._verdicts) >= _MOST:
                self._verdicts.clear()
            self._verdicts[digest] = now, answer
        return answer

    def _review(self, token: str) -> rules.Verdict:
        user = rules.identity(self._api.create(TOKEN_REVIEWS, rules.token_review(token)))
        reviews = rules.access_reviews(user) if user is not None else ()
        return rules.verdict(user, [self._api.create(ACCESS_REVIEWS, review) for review in reviews])
