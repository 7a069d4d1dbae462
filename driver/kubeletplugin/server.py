"""The kubelet's DRA service, v1 and v1beta1: proto in, proto out, one answer for every claim asked.

Nothing that goes wrong with one claim reaches another: its own entry says so. The kubelet fails
the whole call when an entry is missing or unknown (F-29).
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
from dataclasses import dataclass
from typing import Any, Final, TypeVar, assert_never

import grpc
import structlog

from driver import clock, errors, ids, reasons
from driver.kubeletplugin import jobs, metrics, ports, refusals, telling
from driver.pb import dra_v1_pb2, dra_v1_pb2_grpc, dra_v1beta1_pb2, dra_v1beta1_pb2_grpc

_log = structlog.get_logger(__name__)
T = TypeVar("T")

HANDLERS = 128
"""Calls served at once: one per pod of a node (110), so that no Unprepare waits for Prepares."""
_PREPARES = 128
_UNPREPARES = 128
"""As many: a claim that waits for a GPU in hand, or for one that hangs, has a thread that nobody
else needs. Those that work are few: one a GPU."""
DEADLINE_S = 40.0
"""A call is answered within this; the kubelet gives up after 45 s."""

_FAILURES = {
    "prepare": reasons.Reason.PREPARE_FAILED,
    "unprepare": reasons.Reason.UNPREPARE_FAILED,
}


@dataclass(frozen=True, slots=True)
class Failed:
    """A fault, caught at the door: what the kubelet is told."""

    reason: reasons.Reason
    message: str


class Cancelled:
    """Nobody waited for the work any more: it was not begun, or taken back."""


Outcome = ports.Prepared | ports.Refused | Failed | Cancelled | None
"""Of one claim; None is a finished Unprepare."""
Outcomes = Mapping[str, Outcome]
"""Of a call, by the claim's UID."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the service: its messages, how it is added to a server, what it can say."""

    messages: Any
    add: Callable[..., None]
    share_ids: bool


VERSIONS: Final = (
    Version(dra_v1_pb2, dra_v1_pb2_grpc.add_DRAPluginServicer_to_server, share_ids=True),
    Version(dra_v1beta1_pb2, dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server, share_ids=False),
)
"""Served side by side; the kubelet takes the newest it knows."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What the service works with."""

    teller: telling.Teller
    metrics: metrics.Metrics
    refusals: refusals.Refusals
    clock: clock.Clock
    deadline_s: float = DEADLINE_S


class DraService:
    """Thread safe. Claims of one call, and of several, are worked on at the same time."""

    def __init__(self, preparation: ports.Preparation, tools: Tools) -> None:
        self._preparation = preparation
        self._tools = tools
        self._requests = itertools.count(1)
        self._pools = {
            "prepare": futures.ThreadPoolExecutor(_PREPARES, thread_name_prefix="prepare"),
            "unprepare": futures.ThreadPoolExecutor(_UNPREPARES, thread_name_prefix="unprepare"),
        }
        self._jobs = {call: jobs.Jobs[Outcome](pool) for call, pool in self._pools.items()}
        for call, running in self._jobs.items():
            tools.metrics.running[call].set_function(running.count)

    def add_to(self, server: grpc.Server) -> None:
        """Serve on `server`."""
        for version in VERSIONS:
            functools.partial(version.add, _Plugin(self, version))(server)

    def close(self) -> None:
        """Have running work stop where it can, and what waits not begin."""
        for running in self._jobs.values():
            running.abandon_all()
        for pool in self._pools.values():
            pool.shutdown(wait=False)

    def prepare(self, asked: Iterable[Any], context: grpc.ServicerContext) -> Outcomes:
        """Prepare claims; a claim asked twice is prepared once."""
        return self._call("prepare", asked, context)

    def unprepare(self, asked: Iterable[Any], context: grpc.ServicerContext) -> Outcomes:
        """Undo it. What is still being prepared for a claim is told to stop."""
        claims = tuple(asked)
        for claim in claims:
            self._jobs["prepare"].abandon(ids.ClaimUid(claim.uid))
        return self._call("unprepare", claims, context)

    def _call(self, call: str, asked: Iterable[Any], context: grpc.ServicerContext) -> Outcomes:
        """The outcome of every claim asked, by UID, within the deadline."""
        deadline = self._tools.clock.monotonic() + self._tools.deadline_s
        request = next(self._requests)
        refs = {
            claim.uid: ports.ClaimRef(claim.namespace, claim.name, ids.ClaimUid(claim.uid))
            for claim in asked
        }
        joined = {
            uid: self._jobs[call].join(ref.uid, self._work(call, ref, request))
            for uid, ref in refs.items()
        }
        _log.debug("call", call=call, request=request, claims=len(refs))
        answered = _Flag()

        def ended() -> None:
            for job in joined.values():
                self._jobs[call].leave(job, broken_off=not answered.up)

        if not context.add_callback(ended):  # the call was over before we could ask to hear of it
            ended()
        found = {uid: self._outcome(job, deadline) for uid, job in joined.items()}
        answered.up = True
        return found

    def _outcome(self, job: jobs.Job[Outcome], deadline: float) -> Outcome:
        left_s = max(0.0, deadline - self._tools.clock.monotonic())
        try:
            return job.future.result(left_s)
        except futures.TimeoutError:
            text = f"no end after {self._tools.deadline_s:.0f} s, and going on"
            return Failed(reasons.Reason.STILL_RUNNING, text)

    def _work(self, call: str, ref: ports.ClaimRef, request: int) -> jobs.Work[Outcome]:
        """The claim's work, with its log, metrics and events around it."""
        started = self._tools.clock.monotonic()

        def work(cancelled: ports.Cancelled) -> Outcome:
            with structlog.contextvars.bound_contextvars(
                call=call, request=request, claim=f"{ref.namespace}/{ref.name}", claim_uid=ref.uid
            ):
                outcome = self._guarded(call, ref, cancelled)
                if cancelled() and isinstance(outcome, ports.Refused | Failed):
                    outcome = Cancelled()
                duration_s = self._tools.clock.monotonic() - started
                self._report(call, ref, outcome, duration_s)
                return outcome

        return work

    def _guarded(self, call: str, ref: ports.ClaimRef, cancelled: ports.Cancelled) -> Outcome:
        """Let the use case act; whatever it raises ends here, as this claim's own error."""
        if cancelled():
            return Cancelled()
        try:
            if call == "prepare":
                return self._preparation.prepare(ref, cancelled)
            return self._preparation.unprepare(ref)
        except errors.RationError as e:
            _log.warning("claim failed", error=str(e))
            return Failed(_FAILURES[call], str(e))
        except Exception as e:  # noqa: BLE001 - the RPC boundary
            _log.exception("claim failed by a fault of ours")
            return Failed(_FAILURES[call], f"{type(e).__name__}: {e}")

    def _report(self, call: str, ref: ports.ClaimRef, outcome: Outcome, duration_s: float) -> None:
        result = _result(outcome)
        self._tools.metrics.finished(call, result, duration_s)
        _log.info("claim worked on", result=result, duration_s=round(duration_s, 4))
        if isinstance(outcome, ports.Refused | Failed):
            self._tools.metrics.failed(call, outcome.reason)
            self._tools.teller.claim_warning(ref, outcome.reason, outcome.message)
        if call == "prepare":
            self._say(ref, outcome)
        elif outcome is None:
            self._tools.refusals.unprepared(ref)

    def _say(self, ref: ports.ClaimRef, outcome: Outcome) -> None:
        """Have it said on the claim how its Prepare ended; of one that was broken off, nothing."""
        match outcome:
            case ports.Prepared():
                self._tools.refusals.prepared(ref)
            case ports.Refused(reason=reason, message=message, permanent=permanent):
                self._tools.refusals.refused(ref, reason, message, permanent=permanent)
            case Failed(reason, message):
                self._tools.refusals.refused(ref, reason, message)
            case _:
                pass


class _Plugin:
    """The service in the words of one version."""

    def __init__(self, service: DraService, version: Version) -> None:
        self._service = service
        self._version = version

    def NodePrepareResources(  # noqa: N802 - the service names it
        self,
        request: Any,  # noqa: ANN401 - of either version
        context: grpc.ServicerContext,
    ) -> Any:  # noqa: ANN401 - of the same version
        """See `DraService.prepare`."""
        found = self._service.prepare(request.claims, context)
        return self._version.messages.NodePrepareResourcesResponse(
            claims={uid: self._prepared(outcome) for uid, outcome in found.items()}
        )

    def NodeUnprepareResources(  # noqa: N802 - the service names it
        self,
        request: Any,  # noqa: ANN401 - of either version
        context: grpc.ServicerContext,
    ) -> Any:  # noqa: ANN401 - of the same version
        """See `DraService.unprepare`."""
        found = self._service.unprepare(request.claims, context)
        messages = self._version.messages
        answers = {
            uid: messages.NodeUnprepareResourceResponse(error=_error(outcome) or "")
            for uid, outcome in found.items()
        }
        return messages.NodeUnprepareResourcesResponse(claims=answers)

    def _prepared(self, outcome: Outcome) -> Any:  # noqa: ANN401 - of this version
        answer = self._version.messages.NodePrepareResourceResponse
        if not isinstance(outcome, ports.Prepared):
            return answer(error=_error(outcome) or "")
        return answer(devices=[self._device(one) for one in outcome.devices])

    def _device(self, prepared: ports.PreparedDevice) -> Any:  # noqa: ANN401 - of this version
        share = {"share_id": prepared.share_id or None} if self._version.share_ids else {}
        return self._version.messages.Device(
            request_names=[prepared.request] if prepared.request else [],
            pool_name=prepared.pool,
            device_name=prepared.device,
            cdi_device_ids=prepared.cdi_ids,
            **share,
        )


@dataclass(slots=True)
class _Flag:
    up: bool = False


def _result(outcome: Outcome) -> str:
    match outcome:
        case ports.Prepared() | None:
            return "done"
        case ports.Refused():
            return "refused"
        case Failed():
            return "failed"
        case Cancelled():
            return "cancelled"
        case _:
            assert_never(outcome)


def _error(outcome: Outcome) -> str | None:
    """What the kubelet shows on the pod: the reason first."""
    match outcome:
        case ports.Refused(reason=reason, message=message) | Failed(reason, message):
            return errors.encodable(f"{reason.value}: {message}")
        case Cancelled():
            return f"{reasons.Reason.PREPARE_FAILED.value}: the call was cancelled"
        case ports.Prepared() | None:
            return None
        case _:
            assert_never(outcome)
