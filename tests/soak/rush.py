"""Calls for a whole node at once, for claims that nobody made."""

from typing import Any

from driver import ids
from driver.kubeletplugin import ports
from tests.fakes import kubelet
from tests.soak import servers


def start(plugin: kubelet.Plugin) -> list[Any]:
    """Not waited for. While the API server tells nothing, every call has to wait.

    An Unprepare waits for the Prepare of its claim, so both kinds wait at the same time.
    """
    refs = [
        ports.ClaimRef("default", f"rush-{index}", ids.ClaimUid(f"rush-{index}"))
        for index in range(servers.PODS)
    ]
    return [begin(ref) for begin in (plugin.start_prepare, plugin.start_unprepare) for ref in refs]
