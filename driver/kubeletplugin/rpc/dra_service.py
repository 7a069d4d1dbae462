"""The kubelet's DRA service, v1 and v1beta1: one response entry for every claim requested.

A failure of one claim never affects another: it is reported in the claim's own entry. The kubelet
fails the whole call if an entry is missing or unknown (F-29).
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
from driver.kubeletplugin import events as plugin_events
from driver.kubeletplugin import metrics, ports
from driver.kubeletplugin.rpc import inflight
from driver.kubeletplugin.status import readiness
from driver.pb import dra_v1_pb2, dra_v1_pb2_grpc, dra_v1beta1_pb2, dra_v1beta1_pb2_grpc

_log = structlog.get_logger(__name__)
T = TypeVar("T")

HANDLERS = 128
"""Calls served at once: one per pod of a node (110), so that no Unprepare waits for Prepares."""
_PREPARES = 128
_UNPREPARES = 128
"""As many: a claim that waits for a locked or hung GPU occupies a thread. Few of them work: one per
GPU.
"""
DEADLINE_S = 40.0
"""A call is answered within this; the kubelet gives up after 45 s."""

_FAILURES = {
    "prepare": reasons.Reason.PREPARE_FAILED,
    "unprepare": reasons.Reason.UNPREPARE_FAILED,
}


@dataclass(frozen=True, slots=True)
class Failed:
    """A failure caught at the RPC boundary, as reported to the kubelet."""

    reason: reasons.Reason
    message: str


class Cancelled:
    """The call was cancelled: the work was not begun, or undone."""


Outcome = ports.Prepared | ports.Refused | Failed | Cancelled | None
"""Outcome of one claim; None is a finished Unprepare."""
Outcomes = Mapping[str, Outcome]
"""Outcomes of a call, by the claim's UID."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the service: its messages, its registration, its features."""

    messages: Any
    add: Callable[..., None]
    share_ids: bool


VERSIONS: Final = (
    Version(dra_v1_pb2, dra_v1_pb2_grpc.add_DRAPluginServicer_to_server, share_ids=True),
    Version(dra_v1beta1_pb2, dra_v1beta1_pb2_grpc.add_DRAPluginServicer_to_server, share_ids=False),
)
"""Served side by side; the kubelet takes the newest it knows."""


@dataclass(frozen=True, slots=True)
class Deps:
    """Dependencies of the service."""

    reporter: plugin_events.EventReporter
    metrics: metrics.Metrics
    readiness: readiness.ReadinessTracker
    clock: clock.Clock
    deadline_s: float = DEADLINE_S


class DraService:
    """Thread safe. Claims of one call, and of several, are processed concurrently."""

    def __init__(self, preparation: ports.Preparation, tools: Deps) -> None:
        self._preparation = preparation
        self._deps = tools
        self._requests = itertools.count(1)
        self._pools = {
            "prepare": futures.ThreadPoolExecutor(_PREPARES, thread_name_prefix="prepare"),
            "unprepare": futures.ThreadPoolExecutor(_UNPREPARES, thread_name_prefix="unprepare"),
        }
        self._jobs = {
            call: inflight.InflightJobs[Outcome](pool) for call, pool in self._pools.items()
        }
        for call, running in self._jobs.items():
            tools.metrics.running[call].set_function(running.count)

    def add_to(self, server: grpc.Server) -> None:
        """Register on `server`."""
        for version in VERSIONS:
            functools.partial(version.add, _VersionedService(self, version))(server)

    def close(self) -> None:
        """Stop running work where possible; queued work does not begin."""
        for running in self._jobs.values():
            running.abandon_all()
        for pool in self._pools.values():
            pool.shutdown(wait=False)

    def prepare(self, requested: Iterable[Any], context: grpc.ServicerContext) -> Outcomes:
        """Prepare claims; a claim requested twice is prepared once."""
        return self._process("prepare", requested, context)

    def unprepare(self, requested: Iterable[Any], context: grpc.ServicerContext) -> Outcomes:
        """Unprepare claims. Their Prepares in progress are cancelled."""
        claims = tuple(requested)
        for claim in claims:
            self._jobs["prepare"].abandon(ids.ClaimUid(claim.uid))
        return self._process("unprepare", claims, context)

    def _process(
        self, call: str, requested: Iterable[Any], context: grpc.ServicerContext
    ) -> Outcomes:
        """Return the outcome of every requested claim, by UID, within the deadline."""
        deadline = self._deps.clock.monotonic() + self._deps.deadline_s
        request_id = next(self._requests)
        refs = {
            claim.uid: ports.ClaimRef(claim.namespace, claim.name, ids.ClaimUid(claim.uid))
            for claim in requested
        }
        joined = {
            uid: self._jobs[call].join(ref.uid, self._make_work(call, ref, request_id))
            for uid, ref in refs.items()
        }
        _log.debug("call", call=call, request=request_id, claims=len(refs))
        state = _CallState()

        def ended() -> None:
            for job in joined.values():
                self._jobs[call].leave(job, broken_off=not state.answered)

        if not context.add_callback(ended):  # the call was over before we could ask to hear of it
            ended()
        outcomes = {uid: self._outcome(job, deadline) for uid, job in joined.items()}
        state.answered = True
        return outcomes

    def _outcome(self, job: inflight.Job[Outcome], deadline: float) -> Outcome:
        left_s = max(0.0, deadline - self._deps.clock.monotonic())
        try:
            return job.future.result(left_s)
        except futures.TimeoutError:
            text = f"no end after {self._deps.deadline_s:.0f} s, and going on"
            return Failed(reasons.Reason.STILL_RUNNING, text)

    def _make_work(self, call: str, ref: ports.ClaimRef, request_id: int) -> inflight.Work[Outcome]:
        """Return the claim's work, wrapped with its log context, metrics and events."""
        started = self._deps.clock.monotonic()

        def work(cancelled: ports.Cancelled) -> Outcome:
            with structlog.contextvars.bound_contextvars(
                call=call,
                request=request_id,
                claim=f"{ref.namespace}/{ref.name}",
                claim_uid=ref.uid,
            ):
                outcome = self._run_guarded(call, ref, cancelled)
                if cancelled() and isinstance(outcome, ports.Refused | Failed):
                    outcome = Cancelled()
                duration_s = self._deps.clock.monotonic() - started
                self._report(call, ref, outcome, duration_s)
                return outcome

        return work

    def _run_guarded(self, call: str, ref: ports.ClaimRef, cancelled: ports.Cancelled) -> Outcome:
        """Run the use case; any exception becomes this claim's own failure."""
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
        result = _result_label(outcome)
        self._deps.metrics.observe_duration(call, result, duration_s)
        _log.info("claim worked on", result=result, duration_s=round(duration_s, 4))
        if isinstance(outcome, ports.Refused | Failed):
            self._deps.metrics.count_failure(call, outcome.reason)
            self._deps.reporter.warn_claim(ref, outcome.reason, outcome.message)
        if call == "prepare":
            self._report_readiness(ref, outcome)
        elif outcome is None:
            self._deps.readiness.remove(ref)

    def _report_readiness(self, ref: ports.ClaimRef, outcome: Outcome) -> None:
        """Report the end of a Prepare in the claim's status; a cancelled one reports nothing."""
        match outcome:
            case ports.Prepared():
                self._deps.readiness.set_prepared(ref)
            case ports.Refused(reason=reason, message=message, permanent=permanent):
                self._deps.readiness.set_refused(ref, reason, message, permanent=permanent)
            case Failed(reason, message):
                self._deps.readiness.set_refused(ref, reason, message)
            case _:
                pass


class _VersionedService:
    """The service in the messages of one version."""

    def __init__(self, service: DraService, version: Version) -> None:
        self._service = service
        self._version = version

    def NodePrepareResources(  # noqa: N802 - the service names it
        self,
        request: Any,  # noqa: ANN401 - of either version
        context: grpc.ServicerContext,
    ) -> Any:  # noqa: ANN401 - of the same version
        """See `DraService.prepare`."""
        outcomes = self._service.prepare(request.claims, context)
        return self._version.messages.NodePrepareResourcesResponse(
            claims={uid: self._prepare_response(outcome) for uid, outcome in outcomes.items()}
        )

    def NodeUnprepareResources(  # noqa: N802 - the service names it
        self,
        request: Any,  # noqa: ANN401 - of either version
        context: grpc.ServicerContext,
    ) -> Any:  # noqa: ANN401 - of the same version
        """See `DraService.unprepare`."""
        outcomes = self._service.unprepare(request.claims, context)
        messages = self._version.messages
        responses = {
            uid: messages.NodeUnprepareResourceResponse(error=_error_text(outcome) or "")
            for uid, outcome in outcomes.items()
        }
        return messages.NodeUnprepareResourcesResponse(claims=responses)

    def _prepare_response(self, outcome: Outcome) -> Any:  # noqa: ANN401 - of this version
        response = self._version.messages.NodePrepareResourceResponse
        if not isinstance(outcome, ports.Prepared):
            return response(error=_error_text(outcome) or "")
        return response(devices=[self._device(device) for device in outcome.devices])

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
class _CallState:
    answered: bool = False


def _result_label(outcome: Outcome) -> str:
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


def _error_text(outcome: Outcome) -> str | None:
    """Return the error the kubelet shows on the pod: the reason first."""
    match outcome:
        case ports.Refused(reason=reason, message=message) | Failed(reason, message):
            return errors.encodable(f"{reason.value}: {message}")
        case Cancelled():
            return f"{reasons.Reason.PREPARE_FAILED.value}: the call was cancelled"
        case ports.Prepared() | None:
            return None
        case _:
            assert_never(outcome)
