"""One node whose plugin stands behind the proxy."""

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client import samples

from driver.kube import client, gvr
from hack.cluster import api, reboot
from tests.blackbox import subject
from tests.blackbox.ground import programs
from tests.blackbox.proxy import proxy
from tests.e2e import kubelet_calls, playground

Raw = dict[str, Any]
REGISTERED_S = 60.0
_NOTICED_S = 3.0
WIPED_S = 75.0
"""A kubelet waits 30 s before it removes the slices of a plugin that is gone."""


class Seat:
    """The subject on one node; `proxy` is what the kubelet sees of it."""

    def __init__(
        self,
        cluster: api.Cluster,
        kube: client.KubeClient,
        places: programs.Places,
        source: subject.Subject,
    ) -> None:
        self.cluster = cluster
        self.kube = kube
        self.places = places
        self.node = places.node
        self.subject = source
        self.programs = programs.Programs(places, source)
        kubelet = places.where.node(self.node).kubelet
        self.proxy = proxy.Proxy(kubelet, places.plugins, source.name[:8])

    @contextlib.contextmanager
    def taken(self) -> Iterator["Seat"]:
        """Meanwhile the plugin runs there, registered, its devices published."""
        self.programs.furnish()
        with self.proxy:
            try:
                self.mend()
                yield self
            finally:
                self.proxy.faults.lift()
                self.programs.end()

    def mend(self) -> None:
        """Undo what a case may have left: everything runs, nothing is hidden or broken."""
        self.proxy.faults.lift()
        if self.cluster.pid("kubelet", self.node) is None:
            self.cluster.start("kubelet", self.node)
        self.programs.start_companions()
        self.programs.start()
        self.proxy.hide()
        self.wait_published()

    def slices(self) -> list[Raw]:
        """The node's slices of this driver."""
        chosen = f"spec.driver={self.subject.driver},spec.nodeName={self.node}"
        return self.kube.list(gvr.RESOURCE_SLICES, field_selector=chosen).items

    def devices(self) -> dict[str, Raw]:
        """Return the devices of all slices by name."""
        return {
            entry["name"]: entry
            for slice_ in self.slices()
            for entry in slice_["spec"].get("devices", ())
        }

    def is_whole(self) -> bool:
        """Return whether there are devices, and each pool has as many slices as it says."""
        results = [slice_["spec"]["pool"] for slice_ in self.slices()]
        pools = {
            (result["name"], result["generation"], result["resourceSliceCount"])
            for result in results
        }
        counted = [(result["name"], result["generation"]) for result in results]
        whole = all(counted.count((name, generation)) == entry for name, generation, entry in pools)
        return whole and bool(self.devices())

    def wait_published(self, within_s: float = REGISTERED_S) -> None:
        """Wait until all slices are there and the kubelet has accepted a plugin that still runs."""
        message = f"{self.subject.name} publishes\n{self.log()}"
        playground.until(self.is_whole, within_s, message)
        playground.until(self._accepted, within_s, "the kubelet accepts the plugin")

    def _accepted(self) -> bool:
        bridges = self.proxy.bridges()
        return bool(bridges) and all(
            bridge.service is not None and bridge.service.door.is_open() for bridge in bridges
        )

    def log(self) -> str:
        """The end of the plugin's log, for what is told of a failure."""
        return self.programs.log()

    def registrations(self) -> int:
        """Return how often the kubelet has told the plugin that it is accepted."""
        return len(
            [call for call in self.proxy.records.calls("NotifyRegistrationStatus") if call.code]
        )

    def registered_after(self, previous: int, within_s: float = REGISTERED_S) -> None:
        """Wait for one registration more."""
        playground.until(
            lambda: self.registrations() > previous, within_s, "the plugin is registered again"
        )

    def offer(self, *, without: Sequence[str] = ()) -> None:
        """Have the kubelet register the plugin anew, without some versions of its services."""
        previous = self.registrations()
        self.proxy.hide(registration=True, versions=without)
        time.sleep(_NOTICED_S)
        self.proxy.hide(versions=without)
        self.registered_after(previous)
        self.wait_published()

    def stop_kubelet(self) -> None:
        """SIGKILL would leave its pods' state half written; a restart is a SIGTERM."""
        self.cluster.stop("kubelet", self.node)

    def start_kubelet(self) -> None:
        """Start it; it finds its plugins a moment later."""
        self.cluster.start("kubelet", self.node)

    def restart_kubelet(self) -> None:
        """One after the other."""
        self.stop_kubelet()
        self.start_kubelet()

    @contextlib.contextmanager
    def without_gates(self, *gates: str) -> Iterator[None]:
        """Meanwhile the kubelet runs with these feature gates off."""
        path = self.places.where.node(self.node).config / "kubelet.yaml"
        usual = path.read_text()  # JSON, which is YAML
        off = {**json.loads(usual), "featureGates": dict.fromkeys(gates, False)}
        try:
            path.write_text(json.dumps(off))
            self.restart_kubelet()
            self.wait_published()
            yield
        finally:
            path.write_text(usual)
            self.restart_kubelet()
            self.wait_published()

    def reboot(self) -> None:
        """The node loses its power and boots; the plugin is started again as its unit would be."""
        self.programs.lose_power()
        reboot.reboot(self.places.where, self.node)
        self.programs.run_all(self.subject.node.reboot)
        self.programs.start_companions()
        self.programs.start()

    def gone(self, within_s: float = WIPED_S) -> None:
        """Wait until the node has no slices of this driver."""
        playground.until(lambda: not self.slices(), within_s, "the slices are removed")

    def stays(self, topic: Any, for_s: float, step_s: float = 1.0) -> None:
        """Fail as soon as what is asked for changes."""
        first, end = topic(), time.monotonic() + for_s
        while time.monotonic() < end:
            time.sleep(step_s)
            now = topic()
            assert now == first, f"{now} instead of {first}"

    def metrics(self) -> list[samples.Sample]:
        """Return what the node's kubelet tells."""
        return list(kubelet_calls.metrics(self.cluster, f"nodes/{self.node}"))

    def cdi_files(self, uid: str) -> list[str]:
        """CDI specs with the claim's UID in their name."""
        return sorted(path.name for path in self.places.cdi.glob(f"*{uid}*"))
