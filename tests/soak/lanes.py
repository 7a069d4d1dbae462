"""Pods come and go: their claims are made, prepared, released and gone, whatever breaks."""

import random  # noqa: TID251 - the same every time
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc

from driver import clock, errors, ids
from driver.kubeletplugin import ports
from tests.fakes import battering
from tests.soak import draw, ledger, room

WITHIN_S = 60.0
"""A claim that waits longer, with every trouble over in seconds, is lost."""
RETRY_S = 0.2
Broken = (grpc.RpcError, grpc.FutureCancelledError, grpc.FutureTimeoutError, ValueError)
"""What a call ends in while the plugin or the kubelet is away; closed channels: ValueError."""
_RETRIED = (errors.ApiError, *Broken)
Answer = TypeVar("Answer")


class LostError(Exception):
    """A step that did not come about in time."""


class Refused(Exception):
    """The plugin answered with an error."""


@dataclass(frozen=True, slots=True)
class Ground:
    """State shared by all lanes; `lock` is of the room."""

    node: battering.Battered
    room: room.Room
    lock: threading.Lock
    book: ledger.Ledger
    time: clock.Clock


class Lane:
    """One pod at a time; `run` is a thread's target."""

    def __init__(self, ground: Ground, number: int, seed: int) -> None:
        self._ground = ground
        self._name = f"lane-{number}"
        self._pods = draw.pods(seed, number)
        self._numbers = random.Random(f"{seed}/{number}/devices")  # noqa: S311 - no secret
        self._made = 0
        self._half: list[str] = []
        self._never = threading.Event()

    def run(self) -> None:
        """Until the cycles are enough, or something is broken."""
        try:
            for pod in self._pods:
                if self._ground.book.broken or not self._one(pod):
                    break
            self._tidy()
        except Exception as error:  # noqa: BLE001 - any of them ends the run, and is told
            self._ground.book.breach(f"{self._name}: {type(error).__name__}: {error}")

    def _one(self, pod: draw.Pod) -> bool:
        """Return whether there is a next one."""
        devices = self._take(pod)
        if not devices:
            self._pause(RETRY_S)
            return True
        wait_s = self._ground.book.promise(len(devices))
        if wait_s is not None:
            self._pause(wait_s)
            self._pass(pod, devices)
        self._give(devices)
        return wait_s is not None

    def _pass(self, pod: draw.Pod, devices: list[str]) -> None:
        """The life of one pod."""
        book = self._ground.book
        refs = tuple(self._claim(device) for device in devices)
        book.reach("made", len(refs))
        began = self._ground.time.monotonic()
        first = self._insist(lambda: self._call("prepare", refs), "prepare")
        book.waited(self._ground.time.monotonic() - began)
        self._check(refs, present=True)
        book.reach("prepared", len(refs))
        self._pause(pod.hold_s)
        if pod.again:
            again = self._insist(lambda: self._call("prepare", refs), "prepare again")
            if again != first:
                book.breach(f"{refs[0].name}: prepared again it is told {again}, not {first}")
        self._insist(lambda: self._call("unprepare", refs), "unprepare")
        self._check(refs, present=False)
        book.reach("released", len(refs))
        for ref in refs:
            self._insist(lambda ref=ref: self._forget(ref), "delete")  # type: ignore[misc]
        book.reach("gone", len(refs))

    def _call(self, call: str, refs: tuple[ports.ClaimRef, ...]) -> dict[str, list[str]]:
        """The CDI ids of each claim."""
        entries = self._ground.node.start_call(call, refs).result().claims
        if set(entries) != {ref.uid for ref in refs}:
            raise AssertionError(f"{call} of {refs} was answered for {sorted(entries)}")
        for entry in entries.values():
            if entry.error:
                raise Refused(entry.error)
        return {uid: _cdi_ids(entry) for uid, entry in entries.items() if call == "prepare"}

    def _check(self, refs: tuple[ports.ClaimRef, ...], *, present: bool) -> None:
        """Record and spec of every claim are there, or neither is."""
        own = self._ground.node.own
        for ref in refs:
            results = [len(function(own, ref.uid)) > 0 for function in (_records, _specs)]
            if results != [present, present]:
                self._ground.book.breach(
                    f"{ref.name}: record and spec there: {results}, not {present}"
                )

    def _insist(self, act: Callable[[], Answer], description: str) -> Answer:
        """Repeat the call as the kubelet does."""
        time = self._ground.time
        deadline = time.monotonic() + WITHIN_S
        while True:
            try:
                return act()
            except (*_RETRIED, Refused) as error:
                why = _why(error)
            self._ground.book.refuse(f"{description}: {why}")
            if time.monotonic() > deadline:
                raise LostError(f"no {description} within {WITHIN_S:.0f} s: {why}")
            self._pause(RETRY_S)

    def _claim(self, device: str) -> ports.ClaimRef:
        """Under a new name each time: a create that broke off may have been done."""

        def made() -> ports.ClaimRef:
            self._made += 1
            self._half.append(f"{self._name}-{self._made}")
            claim_ref = self._ground.node.claim(self._half[-1], device)
            self._half.pop()
            return claim_ref

        return self._insist(made, "create")

    def _forget(self, ref: ports.ClaimRef) -> None:
        try:
            self._ground.node.forget((ref,))
        except errors.NotFound:
            return  # the try before did it, and its answer was lost

    def _tidy(self) -> None:
        """Delete what was made half."""
        for name in self._half:
            ref = ports.ClaimRef(battering.NAMESPACE, name, ids.ClaimUid(""))
            self._insist(lambda ref=ref: self._forget(ref), "delete")  # type: ignore[misc]

    def _take(self, pod: draw.Pod) -> list[str]:
        room = self._ground.room
        with self._ground.lock:
            results = [(face, room.take(face, self._numbers)) for face in pod.faces]
        for face, device in results:
            if device is not None:
                self._ground.book.face(face)
        return [device for _, device in results if device is not None]

    def _give(self, devices: list[str]) -> None:
        with self._ground.lock:
            for device in devices:
                self._ground.room.give(device)

    def _pause(self, seconds: float) -> None:
        self._ground.time.wait(self._never, seconds)


def _cdi_ids(entry: Any) -> list[str]:
    return [entry for device in entry.devices for entry in device.cdi_device_ids]


def _records(own: Path, uid: str) -> list[Path]:
    return list((own / "state/claims").glob(f"*{uid}*"))


def _specs(own: Path, uid: str) -> list[Path]:
    return list((own / "cdi").glob(f"*{uid}*"))


def _why(error: Exception) -> str:
    """In few words, and the same for the same cause."""
    if isinstance(error, grpc.RpcError) and hasattr(error, "code"):
        return f"gRPC {error.code().name}"
    if isinstance(error, Refused):
        return str(error)
    return type(error).__name__
