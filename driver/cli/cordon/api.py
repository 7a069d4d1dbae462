"""API requests of the cordon commands. Shell: it decides nothing."""

import contextlib
import threading
from collections.abc import Callable, Iterable

from driver import clock, errors, ids, names
from driver.cli.cordon import holders as cordon_holders
from driver.cli.cordon import marks, targets
from driver.devices import faces
from driver.kube import client, gvr
from driver.resources.core import pods
from driver.resources.dra import claims, slices

Plan = Callable[[marks.CordonMarks], tuple[marks.Write, ...]]

_TRIES = 5
_LOOK_S = 0.5


class CordonApi:
    """API of one cluster, by the caller's rights. All methods raise ApiError."""

    def __init__(self, kube: client.KubeClient, driver: str, time: clock.Clock) -> None:
        self._kube = kube
        self._driver = driver
        self._clock = time
        self._never = threading.Event()

    def resolve(self, target: targets.Target) -> tuple[targets.Target, frozenset[str]]:
        """The target with the GPU's own name, and every name of that GPU.

        Raises:
            BadInput: the node publishes no such GPU.
            NotFound: there is no such node.
        """
        node = self._kube.get(gvr.NODES, target.node)
        if not target.gpu:
            return target, frozenset()
        published = targets.list_gpus(self._slices(target.node))
        marked = marks.parse_marks(node, rule=False, has_rules=False).annotation
        if target.gpu in marked and not any(target.gpu in item.known_as for item in published):
            return target, frozenset()  # it is gone, and its mark is there still
        gpu = targets.find_gpu(target, published)
        return targets.Target(target.node, gpu.name), gpu.known_as

    def read_marks(self, node: ids.NodeName) -> marks.CordonMarks:
        """Return the node's current marks."""
        has_rules, rule = self._rule(node)
        return marks.parse_marks(self._kube.get(gvr.NODES, node), rule=rule, has_rules=has_rules)

    def carry_out(self, plan: Plan, node: ids.NodeName, *, dry: bool) -> tuple[marks.Write, ...]:
        """Write what a plan makes of the marks of now; what was written, or with `dry` is to be.

        Raises BadInput where the plan does.
        """
        for _ in range(_TRIES - 1):
            writes = plan(self.read_marks(node))
            try:
                self._perform(() if dry else writes)
            except errors.Conflict:
                continue  # a Node is written every few seconds
            return writes
        writes = plan(self.read_marks(node))
        self._perform(writes)
        return writes

    def wait_published(self, target: targets.Target, *, cordoned: bool, within_s: float) -> bool:
        """Return whether the plugin published it in time; the server's rules hold at once."""
        deadline = self._clock.monotonic() + within_s
        while not self._is_published(target, cordoned=cordoned):
            if self._clock.monotonic() >= deadline:
                return False
            self._clock.wait(self._never, _LOOK_S)
        return True

    def holders(self, target: targets.Target) -> tuple[cordon_holders.Holder, ...]:
        """Return the holders of the target's devices."""
        result = self._kube.list(gvr.RESOURCE_CLAIMS).items
        existing = self._kube.list(gvr.PODS, field_selector=f"spec.nodeName={target.node}").items
        return cordon_holders.holders(
            target, self._driver, map(claims.parse, result), map(pods.parse, existing)
        )

    def evict(self, pod: pods.Pod) -> str:
        """Ask a pod to leave; "" where it does, else why a disruption budget keeps it."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        try:
            self._kube.create(gvr.PODS, body, pod.namespace, subresource="eviction", name=pod.name)
        except errors.TooManyRequests as error:
            return error.message
        except (errors.NotFound, errors.Conflict):
            return ""  # it is gone, or another one by now
        return ""

    def _slices(self, node: ids.NodeName) -> tuple[slices.Slice, ...]:
        mine = f"spec.driver={self._driver},spec.nodeName={node}"
        result = self._kube.list(gvr.RESOURCE_SLICES, field_selector=mine).items
        return tuple(map(slices.parse, result))

    def _is_published(self, target: targets.Target, *, cordoned: bool) -> bool:
        return all(
            any(taint.key == names.CORDONED_TAINT for taint in device.taints) is cordoned
            for resource_slice in self._slices(target.node)
            for device in resource_slice.devices
            if target.gpu in {"", faces.gpu_name(device.name)}
        )

    def _rule(self, node: ids.NodeName) -> tuple[bool, bool]:
        """Return whether the server has rules, and whether the node's exists."""
        try:
            result = self._kube.list(gvr.DEVICE_TAINT_RULES).items
        except errors.NotFound:
            return False, False
        return True, any(item["metadata"]["name"] == marks.rule_name(node) for item in result)

    def _perform(self, writes: Iterable[marks.Write]) -> None:
        for write in writes:
            match write:
                case marks.MakeRule(body=body):
                    with contextlib.suppress(errors.AlreadyExists):
                        self._kube.create(gvr.DEVICE_TAINT_RULES, dict(body))
                case marks.DropRule(name=name):
                    with contextlib.suppress(errors.NotFound):
                        self._kube.delete(gvr.DEVICE_TAINT_RULES, name)
                case marks.Annotate():
                    self._kube.patch(gvr.NODES, write.node, write.body)
