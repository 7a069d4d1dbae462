"""A Lease that only one client sees: it believes that it leads, whatever the API server holds."""

import json
import threading
from typing import Any

Raw = dict[str, Any]


class OwnLease:
    """Answers for one Lease in the API server's place: whoever asks for it has it."""

    def __init__(self, namespace: str, name: str) -> None:
        self._folder = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self._lock = threading.Lock()
        self._version = 0
        self._lease: Raw | None = None

    def is_asked(self, path: str, method: str) -> bool:
        """Return whether a request is about this Lease; the path is without its query."""
        return path == f"{self._folder}/{self._name}" or (path, method) == (self._folder, "POST")

    def answer(self, method: str, body: bytes) -> tuple[int, bytes]:
        """Status and object; 404 until it was written."""
        with self._lock:
            if method in {"POST", "PUT"}:
                self._version += 1
                lease: Raw = json.loads(body)
                lease["metadata"]["resourceVersion"] = str(self._version)
                self._lease = lease
            if self._lease is None:
                status = {"kind": "Status", "reason": "NotFound", "code": 404, "message": "none"}
                return 404, json.dumps(status).encode()
            return (201 if method == "POST" else 200), json.dumps(self._lease).encode()

    @property
    def spec(self) -> Raw:
        """Return what its client believes; empty until it has written it."""
        with self._lock:
            return dict((self._lease or {}).get("spec") or {})
