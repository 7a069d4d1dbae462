"""A plan carried out: what becomes free is reserved first, then the controller evicts (D7)."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from driver import clock, errors
from driver.api import crd, validation
from driver.api import reservations as api
from driver.cli.defrag import inputs
from driver.kube import client, gvr
from driver.resources import reservations
from driver.scheduling.explain import defrag
from driver.scheduling.reservations import device_plan

_LOOK_S = 1.0
_KINDS = ("pod", "gang", "claim", "queue")
Say = Callable[[str], None]


def parse_holder(text: str, path: str = "--for") -> api.Holder:
    """`pod/train-0`, `gang/train`, `claim/gpus`, `queue/vision`, or a label `app=train`.

    Raises:
        BadInput: it is none of these.
    """
    kind, slash, name = text.partition("/")
    label, equals, value = text.partition("=")
    obj: Mapping[str, Any]
    if slash and name and kind in _KINDS:
        obj = {kind: name}
    elif equals and label:
        obj = {"labels": {label: value}}
    else:
        expected = f"{', '.join(f'{item}/NAME' for item in _KINDS)}, or label=value"
        raise errors.BadInput(path, f"{text!r} names nobody to keep it for", expected)
    return validation.read(api.Holder, obj, path)


def build_reservation(
    defrag_inputs: inputs.DefragInputs, plan: defrag.Plan, to: api.Holder, ttl: str, namespace: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the Reservation without a name, and its status with the held devices."""
    gone = [
        {"namespace": move.holder.pod.namespace, "name": move.holder.pod.name}
        | {"uid": move.holder.pod.uid}
        for move in plan.moves
    ]
    body = {
        "apiVersion": crd.VERSION,
        "kind": reservations.KIND,
        "metadata": {"generateName": "defrag-", "namespace": namespace},
        "spec": {
            "for": to.model_dump(by_alias=True, exclude_none=True),
            "ttl": ttl,
            "evicting": gone,
        },
    }
    held = device_plan.placement_devices(
        defrag_inputs.world.view, 0, defrag_inputs.workload, plan.placement
    )
    move = reservations.parse({**body, "metadata": {"name": "defrag", "namespace": namespace}})
    now = clock.rfc3339(clock.SystemClock().now())
    accepted = reservations.render_accepted(move, "", "", now)
    return body, reservations.render_status(move, "Held", held, accepted, "made by ration defrag")


class DefragRun:
    """Against the live cluster, by the caller's rights."""

    def __init__(self, kube: client.KubeClient, namespace: str, say: Say) -> None:
        self._kube = kube
        self._namespace = namespace
        self._say = say
        self._clock = clock.SystemClock()

    def start(self, body: dict[str, Any], status: dict[str, Any]) -> str:
        """Make the Reservation, and say what it holds; its name. Raises ApiError."""
        created = self._kube.create(gvr.RESERVATIONS, body, self._namespace)
        name = str(created["metadata"]["name"])
        self._kube.patch(
            gvr.RESERVATIONS,
            name,
            {"metadata": {"uid": created["metadata"]["uid"]}, "status": status},
            namespace=self._namespace,
            subresource="status",
        )
        self._say(f"reservation {self._namespace}/{name} holds what becomes free")
        undo = f"kubectl -n {self._namespace} delete reservation {name}"
        self._say(f"to give it back, and evict no more: {undo}")
        return name

    def follow(self, plan: defrag.Plan, within_s: float) -> bool:
        """Tell of each pod that goes; whether all are gone in time. Raises ApiError."""
        left = {move.holder.key: move.holder.pod for move in plan.moves}
        deadline = self._clock.monotonic() + within_s
        while left and self._clock.monotonic() < deadline:
            for key, pod in [*left.items()]:
                if self._is_gone(pod.name, pod.namespace, pod.uid):
                    del left[key]
                    self._say(f"pod {key} is gone, {len(left)} to go")
            if left:
                self._clock.wait(threading.Event(), _LOOK_S)
        return not left

    def _is_gone(self, name: str, namespace: str, uid: str) -> bool:
        try:
            result = self._kube.get(gvr.PODS, name, namespace)
        except errors.NotFound:
            return True
        return bool(result["metadata"]["uid"] != uid)
