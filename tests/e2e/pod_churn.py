"""Pods with claims that come and go on real nodes, some at a time, until they are enough."""

import collections
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from driver import errors
from driver.kube import gvr
from tests.e2e import playground

Raw = dict[str, Any]
_LOOK_S = 0.3
_NOT_YET = "no relationship found between node"
"""The API server's node authorizer hears of a binding by a watch, under load after the kubelet."""
_FINISHED = {"Succeeded", "Failed"}


@dataclass(frozen=True, slots=True)
class Kind:
    """Pods with so many claims of a template each, on a node unless it is ""; `at_once` of them."""

    template: str
    claims: int = 1
    node: str = ""
    at_once: int = 4


class PodChurn:
    """`run` until as many claims as are wanted were allocated and prepared; `ended` counts pods.

    A pod ends by itself after a second at most. One that ended is deleted, with its claims.
    """

    def __init__(self, field: playground.Playground, kinds: Sequence[Kind], seed: int) -> None:
        self._field = field
        self._kinds = kinds
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self._live: dict[str, Kind] = {}
        self._number = 0
        self.created = 0
        self.prepared = 0
        self.ended: collections.Counter[str] = collections.Counter()

    def run(self, claims: int, stop: threading.Event) -> None:
        """Create pods until so many claims are requested, or `stop`; wait for none of them."""
        while not stop.is_set() and self.created < claims:
            self.tidy()
            for kind in self._kinds:
                while self._alive(kind) < kind.at_once and self.created < claims:
                    self._create(kind)
            stop.wait(_LOOK_S)

    def drain(self, within_s: float) -> None:
        """Wait until every pod has come and gone."""
        deadline = time.monotonic() + within_s
        while self._live:
            self.tidy()
            assert time.monotonic() < deadline, self._stuck()
            time.sleep(_LOOK_S)

    def tidy(self) -> None:
        """Delete the pods that ended."""
        items = self._field.kube.list(gvr.PODS, namespace=self._field.namespace).items
        pods = {str(item["metadata"]["name"]): item for item in items}
        for name, kind in list(self._live.items()):
            phase = pods[name]["status"].get("phase") if name in pods else "gone"
            if phase in _FINISHED:
                self.ended[phase] += 1
                self.prepared += kind.claims
                self._delete(name)
            if phase in {*_FINISHED, "gone"}:
                del self._live[name]

    def refused(self) -> list[str]:
        """Return what kubelets and drivers said of claims that were not prepared.

        What the API server refused a kubelet is left out: no driver has seen those claims.
        """
        notes = self._field.events_of("FailedPrepareDynamicResources")
        return [note for note in notes if _NOT_YET not in note]

    def _alive(self, kind: Kind) -> int:
        return sum(entry is kind for entry in self._live.values())

    def _create(self, kind: Kind) -> None:
        name = f"p{self._number:05d}"
        self._number += 1
        lasts = self._random.choice(("0", "0.3", "1"))
        selector = playground.on(kind.node) if kind.node else {}
        pod = playground.a_pod(name, command=f"sleep {lasts}", nodeSelector=selector)
        entries = [f"c{index}" for index in range(kind.claims)]
        pod["spec"] |= {
            "resourceClaims": [
                {"name": entry, "resourceClaimTemplateName": kind.template} for entry in entries
            ],
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
        }
        container = pod["spec"]["containers"][0]
        container["resources"]["claims"] = [{"name": entry} for entry in entries]
        self._field.create(pod)
        self._live[name] = kind
        self.created += kind.claims

    def _delete(self, name: str) -> None:
        try:
            self._field.kube.delete(gvr.PODS, name, self._field.namespace)
        except errors.NotFound:
            return

    def _stuck(self) -> str:
        events = {name: self._field.events(name)[-3:] for name in list(self._live)[:6]}
        return f"{len(self._live)} pods are left: {events}"
