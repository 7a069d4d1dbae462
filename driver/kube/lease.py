"""Leader election by a Lease in the API server, and the term that fences every write (D22).

Times are monotonic and local: a record's own timestamps are never read, so a clock step does not
lose the lease (F-24). The rules are those of client-go's leaderelection.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from driver import clock, errors, names
from driver.kube import backoff, client, gvr

log = structlog.get_logger(__name__)

_MANAGER_LIMIT = 128
_TRANSITIONS_DIGITS = 10
_KEPT_METADATA = ("labels", "annotations", "ownerReferences", "finalizers")
"""Metadata kept on a replace: the Lease's installer identifies it by these."""


@dataclass(frozen=True, slots=True)
class Term:
    """One leader's term: the fencing token."""

    holder: str
    transitions: int

    @property
    def field_manager(self) -> str:
        """Return the field manager of this term's writes, checked by the admission policy (D22)."""
        return f"{names.FIELD_MANAGER}/{self.holder}/{self.transitions}"


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds.

    `lease_s`: how long a silent holder keeps the lease. `renew_deadline_s`: how long a leader leads
    without a successful renewal. `retry_s`: between tries, plus up to half as much. `settle_s`:
    between winning and leading, so that the admission policy knows the new term.
    """

    lease_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0
    settle_s: float = 2.0
    jitter: backoff.Jitter = backoff.no_jitter

    @property
    def request_s(self) -> float:
        """Return the limit of a request, so that two fit before the renew deadline."""
        return self.renew_deadline_s / 2


@dataclass(frozen=True, slots=True)
class _Record:
    """A Lease as last read, and when it was first read so; `metadata` holds others' fields."""

    holder: str
    transitions: int
    version: str
    observed_at: float
    metadata: gvr.Object = field(default_factory=dict)
    acquired: str | None = None


class Elector:
    """Acquires, renews and releases the lease. `run` is a thread's target.

    `acquired` is set with the lease: the holder may read. It may write once it has a term.

    `identity` must be new in every process (pod name and a random part): it is half of the fencing
    token. Raises BadInput for one that does not fit into a field manager.
    """

    def __init__(
        self,
        kube: client.KubeClient,
        namespace: str,
        name: str,
        identity: str,
        clock: clock.Clock,
        timings: Timings | None = None,
    ) -> None:
        self._timings = timings or Timings()
        self._client = kube.with_timeout(self._timings.request_s)
        self._lease = (name, namespace)
        self._identity = _check_identity(identity)
        self._clock = clock
        self._record: _Record | None = None
        self._term: Term | None = None
        self._renewed_at = 0.0
        self._settled = False
        self.acquired = threading.Event()

    @property
    def is_leader(self) -> bool:
        """Return whether `term` returns one."""
        return self.term() is not None

    def term(self) -> Term | None:
        """Return our term, while it surely is ours.

        None as soon as the renew deadline has passed, whatever the elector's thread does: a process
        that was frozen finds out at its next write.
        """
        return self._term if self._settled and not self._overdue() else None

    def run(
        self, stop: threading.Event, on_leading: Callable[[Term], None], on_lost: Callable[[], None]
    ) -> None:
        """Run until `stop` is set, or the lease is lost.

        `on_leading` is called once, `settle_s` after winning, and returns at once (it starts
        threads or sets an event). `on_lost` ends the process. A clean stop releases the lease.
        """
        while not stop.is_set() and not self._try_acquire():
            self._pause(stop)
        if stop.is_set():
            self._release()
            return
        settled_at = self._clock.monotonic() + self._timings.settle_s
        while not stop.is_set():
            left_s = settled_at - self._clock.monotonic()
            if self._term is not None and not self._settled and left_s <= 0:
                self._settled = True
                on_leading(self._term)
            self._pause(stop, left_s if left_s > 0 else None)
            if not stop.is_set() and not self._keep_lease():
                self._settled = False
                log.error("lease lost", identity=self._identity)
                on_lost()
                return
        self._release()

    def _pause(self, stop: threading.Event, at_most_s: float | None = None) -> None:
        wait_s = self._timings.retry_s * (1 + self._timings.jitter() / 2)
        if at_most_s is not None:
            wait_s = min(wait_s, at_most_s)
        if self._term is not None:
            left_s = self._renewed_at + self._timings.renew_deadline_s - self._clock.monotonic()
            wait_s = min(wait_s, max(left_s, 0.0))
        self._clock.wait(stop, wait_s)

    def _try_acquire(self) -> bool:
        """Try to become the holder; return whether it succeeded."""
        try:
            record = self._read_record()
            if record is not None and not self._is_free(record):
                return False
            transitions = 0 if record is None else record.transitions + 1
            self._write(Term(self._identity, transitions), record)
        except errors.ApiError as e:
            log.info("lease not acquired", error=str(e))
            return False
        log.info("lease acquired", identity=self._identity, transitions=transitions)
        self.acquired.set()
        return True

    def _is_free(self, record: _Record) -> bool:
        """Return whether it is released, held by our earlier process, or silent for too long."""
        silent_s = self._clock.monotonic() - record.observed_at
        return record.holder in {"", self._identity} or silent_s >= self._timings.lease_s

    def _keep_lease(self) -> bool:
        """Renew; return whether we still lead, renewed or not."""
        if self._overdue():
            return False
        try:
            self._renew()
        except errors.Conflict:
            return self._readopt()
        except errors.NotFound:
            return False  # it was deleted: another process may have won since
        except errors.ApiError as e:
            log.warning("lease not renewed", error=str(e))
        return not self._overdue()

    def _renew(self) -> None:
        if self._term is not None:
            self._write(self._term, self._record)

    def _readopt(self) -> bool:
        """Handle a foreign write: if the lease is still ours, renew it over the current version.

        We wrote it ourselves if the response to a renewal was lost, and then time is short.
        """
        try:
            record = self._read_record()
            term = None if record is None else Term(record.holder, record.transitions)
            if term != self._term:
                return False
            self._renew()
        except errors.ApiError as e:
            log.warning("lease not renewed", error=str(e))
        return not self._overdue()

    def _overdue(self) -> bool:
        return self._clock.monotonic() - self._renewed_at >= self._timings.renew_deadline_s

    def _read_record(self) -> _Record | None:
        """Read the lease; an unchanged one keeps the time when it was first read so."""
        try:
            lease = self._client.get(gvr.LEASES, *self._lease)
        except errors.NotFound:
            return None
        return self._remember(lease)

    def _remember(self, lease: gvr.Object) -> _Record:
        spec, version = lease.get("spec") or {}, lease["metadata"]["resourceVersion"]
        record = self._record
        if record is None or record.version != version:
            holder, transitions = spec.get("holderIdentity"), spec.get("leaseTransitions")
            now = self._clock.monotonic()
            metadata = {
                key: lease["metadata"][key] for key in _KEPT_METADATA if key in lease["metadata"]
            }
            acquired = spec.get("acquireTime")
            record = _Record(holder or "", int(transitions or 0), version, now, metadata, acquired)
            self._record = record
        return record

    def _write(self, term: Term, previous: _Record | None) -> None:
        """Write our term over exactly the record we know. Raises ApiError."""
        requested_at = self._clock.monotonic()
        now = clock.rfc3339_micro(self._clock.now())
        spec = {
            "holderIdentity": term.holder,
            "leaseDurationSeconds": max(1, round(self._timings.lease_s)),
            "renewTime": now,
            "leaseTransitions": term.transitions,
        }
        acquired = now if self._term is None or previous is None else previous.acquired
        spec |= {"acquireTime": acquired} if acquired else {}
        self._remember(self._save(spec, previous))
        self._renewed_at = requested_at
        self._term = term

    def _save(self, spec: gvr.Object, previous: _Record | None) -> gvr.Object:
        name, namespace = self._lease
        meta = {"name": name, "namespace": namespace}
        body = {"apiVersion": gvr.LEASES.api_version, "kind": "Lease", "spec": spec}
        if previous is None:
            return self._client.create(gvr.LEASES, body | {"metadata": meta}, namespace)
        body["metadata"] = {**previous.metadata, **meta, "resourceVersion": previous.version}
        return self._client.replace(gvr.LEASES, name, body, namespace=namespace)

    def _release(self) -> None:
        """Release the lease, so that a successor need not wait."""
        term, self._term, self._settled = self._term, None, False
        if term is None or self._overdue():
            return
        now = clock.rfc3339_micro(self._clock.now())
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": now,
            "acquireTime": now,
            "leaseTransitions": term.transitions,
        }
        try:
            self._save(spec, self._record)
        except errors.ApiError as e:
            log.warning("lease not released", error=str(e))


def _check_identity(identity: str) -> str:
    longest = Term(identity, 10**_TRANSITIONS_DIGITS - 1).field_manager
    if not identity or not identity.isprintable() or len(longest.encode()) > _MANAGER_LIMIT:
        limit = _MANAGER_LIMIT - len(Term("", 10**_TRANSITIONS_DIGITS - 1).field_manager)
        expected = f"1 to {limit} printable bytes"
        raise errors.BadInput("identity", f"{identity!r} makes no field manager", expected)
    return identity
