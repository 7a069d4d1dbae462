"""Pods of a process, from `/proc/<pid>/cgroup`. Pure.

The kubelet names a pod's group by the pod's UID, in each version and with each driver of cgroups:

    0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _>.slice/cri-...
    4:memory:/kubepods/besteffort/pod<uid>/<container>

The path starts at the kubelet's root, or with `/..` if a reader has a cgroup namespace of its own.
"""

import re

from driver import ids

_PARTS = [f"[0-9a-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12)]
_CGROUPFS = re.compile(f"pod({'-'.join(_PARTS)})")
_SYSTEMD = re.compile(rf"(?:[^/]+-)?pod({'_'.join(_PARTS)})\.slice")


def parse_pod_uids(text: str) -> tuple[ids.PodUid, ...]:
    """Return the UIDs of a process's pods, each once; () if none.

    More than one if a kubelet runs in a pod, the outermost first.
    """
    uids: dict[ids.PodUid, None] = {}
    for line in text.splitlines():
        _, _, path = line.partition("/")
        for part in path.split("/"):
            match = _CGROUPFS.fullmatch(part) or _SYSTEMD.fullmatch(part)
            if match:
                uids[ids.PodUid(match[1].replace("_", "-"))] = None
    return tuple(uids)
