"""Passes every gRPC call on to a plugin as bytes, whatever the service, and does what is planned.

All calls of the kubelet's services have one request; their answers are one or a stream, which on
the wire differ in number only.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from tests.blackbox.proxy import faults, records, wire

_HANDLERS = 64
_NO_DEADLINE_S = 1e6
_AGAIN = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 400)]
_CLAIMED = frozenset({"NodePrepareResources", "NodeUnprepareResources"})
Change = Callable[[str, bytes], bytes]


def _unchanged(_method: str, answer: bytes) -> bytes:
    return answer


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Tools:
    """Collaborators of a relay; `plugin` is its name in the records.

    `change` may write an answer anew, by its method; `cut` ends the connections of the plugin.
    """

    plugin: str
    faults: faults.Faults
    records: records.Records
    change: Change = _unchanged
    cut: Callable[[], None] = _nothing


class Relay:
    """Serves at `inside`, asks at `target`."""

    def __init__(self, inside: Path, target: Path, tools: Tools) -> None:
        self._tools = tools
        self._channel = grpc.insecure_channel(f"unix:{target}", options=_AGAIN)
        pool = futures.ThreadPoolExecutor(_HANDLERS, thread_name_prefix="relay")
        self._server = grpc.server(pool, handlers=[_Any(self)])
        self._server.add_insecure_port(f"unix:{inside}")
        self._server.start()

    def close(self) -> None:
        """End it and what passes."""
        self._channel.close()
        self._server.stop(grace=None)

    def serve(self, path: str, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """One call."""
        service, _, method = path.lstrip("/").rpartition("/")
        claims = wire.claims(request) if method in _CLAIMED else ()
        call = records.Call(method, service, self._tools.plugin, claims)
        self._tools.records.begin(call)
        try:
            yield from self._through(path, request, context, call)
            call.code = records.OK
        except grpc.RpcError as e:
            call.code = e.code().name
            context.abort(e.code(), e.details() or "")
        finally:
            call.code = call.code or "ABORTED"

    def _through(
        self, path: str, request: bytes, context: grpc.ServicerContext, call: records.Call
    ) -> Iterator[bytes]:
        fault = self._tools.faults.take(call.method, call.claims)
        match fault:
            case faults.Fail(code, message):
                call.code = code.name
                context.abort(code, message)
            case faults.Drop():
                call.code = "DROPPED"
                self._tools.cut()
                context.abort(grpc.StatusCode.UNAVAILABLE, "cut")
            case faults.Delay(seconds):
                _hold(threading.Event(), context, seconds)
            case faults.Block(release):
                _hold(release, context)
            case faults.Lose() | None:
                pass
        if not context.is_active():
            call.code = "CANCELLED"
            context.abort(grpc.StatusCode.CANCELLED, "nobody waits any more")
        for answer in self._ask(path, request, context, call):
            if isinstance(fault, faults.Lose):
                call.code = fault.code.name
                context.abort(fault.code, fault.message)
            yield self._tools.change(call.method, answer)

    def _ask(
        self, path: str, request: bytes, context: grpc.ServicerContext, call: records.Call
    ) -> Iterator[bytes]:
        left = context.time_remaining()
        # A call without a deadline has centuries left, more than a deadline of ours can say.
        limit = None if left > _NO_DEADLINE_S else left
        asking: Any = self._channel.unary_stream(path, _same, _same)(request, timeout=limit)
        if not context.add_callback(asking.cancel):
            asking.cancel()
        call.reached = True
        for answer in asking:
            call.answers += 1
            if call.method in _CLAIMED:
                call.refused = wire.refused(answer, call.method)
            if call.method == "NodePrepareResources":
                call.cdi = wire.cdi_ids(answer)
            yield answer

    def ask(self, path: str, request: bytes, within_s: float = 40.0) -> bytes:
        """A call of our own, past faults and records. Raises grpc.RpcError."""
        answer: bytes = self._channel.unary_unary(path, _same, _same)(request, timeout=within_s)
        return answer


class _Any(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Takes every method of every service."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        path: str = details.method

        def serve(request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
            return self._relay.serve(path, request, context)

        return grpc.unary_stream_rpc_method_handler(serve, _same, _same)


def _same(message: bytes) -> bytes:
    return message


def _hold(release: threading.Event, context: grpc.ServicerContext, most_s: float = 1e6) -> None:
    """Wait until released, until so long is over, or until nobody waits for the answer."""
    done = threading.Event()
    with contextlib.suppress(ValueError):
        context.add_callback(done.set)
    waited = 0.0
    while waited < most_s and not release.is_set() and not done.is_set():
        step = min(0.05, most_s - waited)
        release.wait(step)
        waited += step
