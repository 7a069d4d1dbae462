"""The plugin's process, with a bomb: it dies by SIGKILL at the point that a file numbers.

The file is at RATION_TEST_BOMB. Without it the process is the product's; with a number in it the
process passes so many points and dies at the next. The file is gone by then, and the point's name
is in `<file>.at`.
"""

import os
import secrets
import signal
import sys
import threading
from pathlib import Path

from driver import clock
from driver.kube import client
from driver.kubeletplugin import app, composition, process_parts
from driver.kubeletplugin.config import PluginConfig
from driver.kubeletplugin.records import claims_api
from driver.runtime import logs
from driver.runtime.files import failpoints


class Bomb(failpoints.Observer):
    """Counts the points that are passed while the file is there."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()

    def on_point(self, point: str) -> None:
        with self._lock:
            if not self._file.exists():
                return
            left = int(self._file.read_text())
            if left:
                self._file.write_text(str(left - 1))
                return
            self._file.with_name(f"{self._file.name}.at").write_text(point)
            self._file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    config = PluginConfig.read(sys.argv[1:])
    logs.configure(config.log_level)
    time = clock.SystemClock()
    kube = client.KubeClient.connect(config.kubeconfig, process_parts.COMPONENT)
    bomb = Bomb(Path(os.environ["RATION_TEST_BOMB"]))
    core = composition.build_core(config, claims_api.KubeClaimReader(kube), time, observer=bomb)
    return app.build(
        config, core, process_parts.ProcessDeps(kube, secrets.SystemRandom().random, time)
    ).run()


if __name__ == "__main__":
    sys.exit(main())
