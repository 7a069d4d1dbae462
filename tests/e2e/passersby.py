"""Pods that come, have a device for a moment and go, over and over: every mode on every node."""

import collections
import itertools
import threading

from driver.kube import gvr
from tests.e2e import playground, release

_PATIENCE_S = 60.0
_AWAY_S = 90.0


class Passersby:
    """In the background between `start` and `stop`, `lanes` of them a node at a time.

    `served` counts those that ran and went, by mode. The templates are there already.
    """

    def __init__(self, field: playground.Playground, lanes: int) -> None:
        self._field = field
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._problem: Exception | None = None
        self.served: collections.Counter[str] = collections.Counter()
        places = itertools.product(field.cluster.nodes(), range(lanes))
        self._threads = [
            threading.Thread(target=self._run, args=(f"{node}-{lane}", node, lane), daemon=True)
            for node, lane in places
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Have the last ones go; raises what went wrong."""
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * _PATIENCE_S)
        self._check()

    def go_on(self) -> None:
        """Wait until one of each mode has come and gone from now on."""
        previous = self._counted()

        def all_of_them() -> bool:
            self._check()
            # The first of a mode that goes may have come before.
            return all(self._counted()[mode] >= previous[mode] + 2 for mode in release.MODES)

        playground.until(all_of_them, _AWAY_S, "pods of every mode come and go")

    def _counted(self) -> collections.Counter[str]:
        with self._lock:
            return self.served.copy()

    def _check(self) -> None:
        if self._problem is not None:
            raise AssertionError(f"a pod that came and went: {self._problem}") from self._problem

    def _run(self, lane: str, node: str, offset: int) -> None:
        modes = itertools.islice(itertools.cycle(release.MODES), 2 * offset, None)
        try:
            for number, mode in enumerate(modes):
                if self._stop.is_set():
                    return
                self._pass(f"by-{lane}-{number}", mode, node)
                with self._lock:
                    self.served[mode] += 1
        except Exception as e:  # noqa: BLE001 - told by whoever waits
            self._problem = e

    def _pass(self, name: str, mode: str, node: str) -> None:
        spec = {"nodeSelector": playground.on(node), "restartPolicy": "Never", "command": "true"}
        self._field.create(release.a_pod(name, template=mode, **spec))

        def ended() -> bool:
            phase = self._field.pod(name)["status"].get("phase")
            if phase == "Failed":
                raise AssertionError(f"pod {name} failed")
            return bool(phase == "Succeeded")

        try:
            playground.until(ended, _PATIENCE_S, f"pod {name} ends")
        except AssertionError as e:
            raise AssertionError("\n".join((str(e), *self._field.events(name)))) from e
        self._field.kube.delete(gvr.PODS, name, self._field.namespace)
        playground.until(lambda: self._field.find(name) is None, _PATIENCE_S, f"pod {name} is gone")
