"""Pods with claims of every kind, that come, run for a while and go, as the seed has it."""

import collections
import random  # noqa: TID251 - numbers are handed in
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from driver import clock, errors
from driver.kube import client, gvr
from tests.chaos import asks, seen

Raw = dict[str, Any]
TICK_S = 0.4
MOST_GPUS = 11.0
"""Of the sixteen: what comes is to find room although a GPU is away."""
_ENDED = {"Succeeded", "Failed"}


@dataclass
class Work:
    """An ask under way. `ran_at` is since when all its pods have run."""

    ask: asks.Ask
    made_at: float
    complete: bool = False
    ran_at: float | None = None
    ending: bool = False


@dataclass(frozen=True, slots=True)
class Measure:
    """Pods at once, and pods in all; None: without end. Each runs so long."""

    at_once: int
    pods: int | None = None
    hold_s: tuple[float, float] = asks.HOLD_S


@dataclass
class Counts:
    """Counts of finished works; `waits_s` are the seconds until their pods ran."""

    made: collections.Counter[str] = field(default_factory=collections.Counter)
    ended: collections.Counter[str] = field(default_factory=collections.Counter)
    waits_s: list[float] = field(default_factory=list)


class Load:
    """`run` is a thread's target; the other calls are for other threads."""

    def __init__(
        self,
        kube: client.KubeClient,
        namespace: str,
        seed: int,
        measure: Measure,
        time: clock.Clock,
    ) -> None:
        self._kube = kube
        self.namespace = namespace
        self._asks = asks.asks(seed, measure.hold_s)
        self._measure = measure
        self._time = time
        self._lock = threading.Lock()
        self._works: dict[str, Work] = {}
        self.counts = Counts()
        self.failures: list[str] = []

    def run(self, stop: threading.Event) -> None:
        """Until told to stop; then no more come."""
        while not self._time.wait(stop, TICK_S):
            self.tick()

    def tick(self) -> None:
        """One step: what is over goes, and others come."""
        self._guarded(self._step)

    def drain(self) -> bool:
        """End what there is; whether all has gone."""
        with self._lock:
            for work in self._works.values():
                work.ending = True
        self._guarded(self._tidy)
        return not self._works

    @property
    def done(self) -> bool:
        """Return whether all pods that were asked for have come and gone."""
        enough = self._measure.pods is not None and self.counts.made["pods"] >= self._measure.pods
        return enough and not self._works

    def pods(self) -> tuple[seen.Pod, ...]:
        """Return those of the load, as the API has them."""
        return tuple(_seen(entry) for entry in self._listed())

    def _guarded(self, act: Callable[[], None]) -> None:
        """The API server may be away at any time; the next tick tries again."""
        try:
            act()
        except errors.ApiError:
            return
        except Exception as error:  # noqa: BLE001 - a bug of the load's own ends the run, told
            self.failures.append(f"{type(error).__name__}: {error}")

    def _step(self) -> None:
        self._tidy()
        for work in [_work for _work in self._works.values() if not _work.complete]:
            self._make(work)
        while self._has_room():
            answer = next(self._asks)
            work = Work(answer, self._time.monotonic())
            with self._lock:
                self._works[answer.name] = work
            self.counts.made["pods"] += answer.pods
            self.counts.made[f"{answer.form} {answer.face}"] += 1
            self._make(work)

    def _has_room(self) -> bool:
        works = list(self._works.values())
        expected = self._measure.pods
        if expected is not None and self.counts.made["pods"] >= expected:
            return False
        pods = sum(work.ask.pods for work in works)
        return pods < self._measure.at_once and sum(work.ask.gpus for work in works) < MOST_GPUS

    def _make(self, work: Work) -> None:
        """Everything of a work; a try that broke off is made good by the next one.

        What is still there of that name and about to go is waited for.
        """
        answer = work.ask
        own = (
            (gvr.RESOURCE_CLAIMS, asks.claim(answer))
            if answer.claim
            else (gvr.RESOURCE_CLAIM_TEMPLATES, asks.template(answer))
        )
        expected = [own, *((gvr.PODS, asks.pod(answer, name)) for name in answer.pod_names)]
        work.complete = all(self._is_made(kind, body) for kind, body in expected)

    def _is_made(self, kind: gvr.Resource, body: Raw) -> bool:
        """Make it; False: one of that name is still there, and about to go."""
        try:
            self._kube.create(kind, body, self.namespace)
        except errors.AlreadyExists:
            present = self._kube.get(kind, body["metadata"]["name"], self.namespace)
            return not present["metadata"].get("deletionTimestamp")
        return True

    def _listed(self) -> list[Raw]:
        return self._kube.list(gvr.PODS, namespace=self.namespace).items

    def _tidy(self) -> None:
        pods: dict[str, list[Raw]] = {}
        for entry in self._listed():
            pods.setdefault(entry["metadata"]["labels"]["work"], []).append(entry)
        now = self._time.monotonic()
        for name, work in list(self._works.items()):
            if work.complete:
                self._judge(work, pods.get(name, []), now)

    def _judge(self, work: Work, pods: list[Raw], now: float) -> None:
        phases = [pod["status"].get("phase") for pod in pods]
        whole = len(pods) == work.ask.pods
        if work.ran_at is None and whole and phases == ["Running"] * len(pods):
            work.ran_at = now
            self.counts.waits_s.append(now - work.made_at)
        over = work.ran_at is not None and now - work.ran_at > work.ask.hold_s
        given_up = any(map(seen.given_up, pods))
        if given_up and not work.ending:
            self.counts.ended["given up by the kubelet"] += 1
        if over or not whole or given_up or _ENDED & {*phases}:
            work.ending = True
        if work.ending:
            self._end(work, pods)

    def _end(self, work: Work, pods: list[Raw]) -> None:
        for pod in pods:
            if not pod["metadata"].get("deletionTimestamp"):
                self._delete(gvr.PODS, pod["metadata"]["name"])
        if pods:
            return
        if work.ask.claim:
            self._delete(gvr.RESOURCE_CLAIMS, work.ask.claim)
        else:
            self._delete(gvr.RESOURCE_CLAIM_TEMPLATES, work.ask.name)
        with self._lock:
            del self._works[work.ask.name]
        self.counts.ended["ran" if work.ran_at is not None else "never ran"] += 1

    def _delete(self, kind: gvr.Resource, name: str) -> None:
        try:
            self._kube.delete(kind, name, self.namespace)
        except errors.NotFound:
            return

    def running(self, numbers: random.Random) -> Iterator[Work]:
        """Works whose pods run, in an order by `numbers`."""
        with self._lock:
            works = [_work for _work in self._works.values() if _work.ran_at is not None]
        works = [work for work in works if not work.ending]
        yield from numbers.sample(works, len(works))

    def force_delete(self, work: Work) -> None:
        """Delete a work's pods without waiting for any container's end."""
        work.ending = True
        body = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
        for name in work.ask.pod_names:
            eviction = {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": name, "namespace": self.namespace},
                "deleteOptions": body,
            }
            try:
                self._kube.create(
                    gvr.PODS, eviction, self.namespace, subresource="eviction", name=name
                )
            except errors.NotFound:
                continue

    def recreate(self, work: Work) -> None:
        """A work's claim and pods go, without a wait, and others of their names come."""
        with self._lock:
            work.complete, work.ran_at, work.made_at = False, None, self._time.monotonic()
        ending = work.ending
        # A pod that is made anew meanwhile would get a claim that then goes.
        self._delete(gvr.RESOURCE_CLAIMS, work.ask.claim)
        self.force_delete(work)
        work.ending, work.complete = ending, False


def _seen(pod: Raw) -> seen.Pod:
    meta = pod["metadata"]
    return seen.Pod(
        name=meta["name"],
        uid=meta["uid"],
        node=pod["spec"].get("nodeName", ""),
        phase=pod["status"].get("phase", ""),
        leaving=bool(meta.get("deletionTimestamp")),
    )
