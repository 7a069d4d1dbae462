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

Plan = Callable[[targets.TargetDevices, marks.CordonMarks], tuple[marks.Write, ...]]

_TRIES = 5
_LOOK_S = 0.5


class CordonApi:
    """API of one cluster, by the caller's rights. All methods raise ApiError."""

    def __init__(self, kube: client.KubeClient, time: clock.Clock) -> None:
        self._kube = kube
        self._clock = time
        self._never = threading.Event()

    def resolve(self, target: targets.Target, driver: str) -> targets.TargetDevices:
        """Return the target's devices, with the GPU's own name; `driver` "": whose GPUs are there.

        Raises:
            BadInput: the node publishes no such GPU, or several drivers publish GPUs of it.
            NotFound: there is no such node.
        """
        node = self._kube.get(gvr.NODES, target.node)
        published = self._slices(target.node)
        chosen = targets.choose_driver(target, published, driver)
        # The rules tell of a GPU that another driver publishes no more.
        rules = self._rules() if target.gpu and not targets.is_own(chosen, published) else None
        marked = marks.parse_marks(node, rules, chosen).gpus
        return targets.find_devices(target, chosen, published, marked)

    def read_marks(self, devices: targets.TargetDevices) -> marks.CordonMarks:
        """Return the current marks of a target's node."""
        rules = self._rules()
        node = self._kube.get(gvr.NODES, devices.target.node)
        return marks.parse_marks(node, rules, devices.driver)

    def carry_out(
        self, plan: Plan, devices: targets.TargetDevices, *, dry: bool
    ) -> tuple[marks.Write, ...]:
        """Write what a plan makes of the marks of now; what was written, or with `dry` is to be.

        Raises BadInput where the plan does.
        """
        for _ in range(_TRIES - 1):
            writes = plan(devices, self.read_marks(devices))
            try:
                self._perform(() if dry else writes)
            except errors.Conflict:
                continue  # a Node is written every few seconds
            return writes
        writes = plan(devices, self.read_marks(devices))
        self._perform(writes)
        return writes

    def wait_published(
        self, devices: targets.TargetDevices, *, cordoned: bool, within_s: float
    ) -> bool:
        """Return whether the plugin published it in time; the server's rules hold at once."""
        deadline = self._clock.monotonic() + within_s
        while not self._is_published(devices, cordoned=cordoned):
            if self._clock.monotonic() >= deadline:
                return False
            self._clock.wait(self._never, _LOOK_S)
        return True

    def holders(self, devices: targets.TargetDevices) -> tuple[cordon_holders.Holder, ...]:
        """Return the holders of the target's devices."""
        result = self._kube.list(gvr.RESOURCE_CLAIMS).items
        selector = f"spec.nodeName={devices.target.node}"
        existing = self._kube.list(gvr.PODS, field_selector=selector).items
        return cordon_holders.holders(devices, map(claims.parse, result), map(pods.parse, existing))

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
        result = self._kube.list(gvr.RESOURCE_SLICES, field_selector=f"spec.nodeName={node}").items
        return tuple(map(slices.parse, result))

    def _is_published(self, devices: targets.TargetDevices, *, cordoned: bool) -> bool:
        return all(
            any(taint.key == names.CORDONED_TAINT for taint in device.taints) is cordoned
            for resource_slice in self._slices(devices.target.node)
            if resource_slice.driver == devices.driver
            for device in resource_slice.devices
            if devices.target.gpu in {"", faces.gpu_name(device.name)}
        )

    def _rules(self) -> list[gvr.Object] | None:
        """Return the server's rules; None if it has none to serve."""
        try:
            return self._kube.list(gvr.DEVICE_TAINT_RULES).items
        except errors.NotFound:
            return None

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
