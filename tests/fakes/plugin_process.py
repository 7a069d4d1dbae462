"""A whole plugin process over a made-up node core: `python -m tests.fakes.plugin_process MODE ...`.

MODE is what goes wrong once it serves: `nothing`, `publisher` (a core thread dies) or `library`
(a thread that some library started dies, as gRPC's own would); `swift` is `nothing`, by a clock
ten times as fast. The rest are the plugin's flags.
"""

import sys
import threading

from driver import clock, errors
from driver.api import offerings
from driver.devices import health as domain
from driver.devices import model
from driver.kube import client
from driver.kubeletplugin import app, composition, process_parts
from driver.kubeletplugin.config import PluginConfig
from driver.kubeletplugin.health import reset_policy, reset_watch
from driver.kubeletplugin.host import locks
from driver.kubeletplugin.prepare import mig_mode_refusals
from driver.kubeletplugin.recovery import claim_gc
from driver.kubeletplugin.usage import activity_watch, usage_watch
from driver.runtime import logs
from tests.fakes import clock as fake_clock
from tests.fakes import gpunode, health, plugin_shell, preparation, sharing, users


def _fail() -> model.Inventory:
    raise ValueError("out of luck")


def main() -> int:
    mode, *flags = sys.argv[1:]
    config = PluginConfig.read(flags)
    logs.configure("debug")
    kube = client.KubeClient.connect(config.kubeconfig, "test")
    gpus = plugin_shell.Gpus(plugin_shell.inventory(2))
    looks = 0

    def look() -> model.Inventory:
        nonlocal looks
        looks += 1
        if mode == "publisher" and looks > 2:
            return _fail()
        if mode == "library" and looks > 2:
            threading.Thread(target=_fail, name="library").start()
        return gpus.look()

    core = composition.Core(
        preparation.Preparation(),
        look,
        tuple,
        lambda: None,
        health.NoGpus(),
        offerings.NodeOfferings(),
        sharing.FakeDaemons(config.mps_dir),
        tuple,
        claim_gc.GcTargets(tuple, gpunode.FakeReader(), lambda _: "", lambda _: None, tuple),
        usage_watch.UsageSources(tuple, users.Nobody(), lambda _: (), gpunode.FakeReader()),
        activity_watch.ActivitySources(
            tuple,
            users.Nobody(),
            users.Idle(),
            lambda _: (),
            gpunode.FakeReader(),
            users.Idle(),
        ),
        reset_watch.ResetTarget(
            lambda _: reset_policy.GpuUse(domain.PollResult()),
            lambda _: None,
            locks.Locks(config.state_dir / "locks", clock.SystemClock()),
        ),
        mig_mode_refusals.ModeRefusals(clock.SystemClock()),
    )
    time = fake_clock.Swift() if mode == "swift" else clock.SystemClock()
    outside = process_parts.ProcessDeps(kube, lambda: 0.5, time)
    try:
        return app.build(config, core, outside).run()
    except errors.RationError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
