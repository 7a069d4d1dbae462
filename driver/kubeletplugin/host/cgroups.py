"""Which pod a process is of, by `/proc/<pid>/cgroup`. Pure.

The kubelet names a pod's group by the pod's UID, in each version and with each driver of cgroups:

    0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _>.slice/cri-...
    4:memory:/kubepods/besteffort/pod<uid>/<container>

The path begins wherever the kubelet's root is, or with `/..` where a reader has a cgroup
namespace of its own.
"""

import re

from driver import ids

_PARTS = [f"[0-9a-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12)]
_CGROUPFS = re.compile(f"pod({'-'.join(_PARTS)})")
_SYSTEMD = re.compile(rf"(?:[^/]+-)?pod({'_'.join(_PARTS)})\.slice")


def parse_pod_uids(text: str) -> tuple[ids.PodUid, ...]:
    """The UIDs of the pods that a process is of, each once; () when of none, or of no sense.

    More than one where a kubelet runs in a pod of another's, the outermost first.
    """
    found: dict[ids.PodUid, None] = {}
    for line in text.splitlines():
        _, _, path = line.partition("/")
        for part in path.split("/"):
            match = _CGROUPFS.fullmatch(part) or _SYSTEMD.fullmatch(part)
            if match:
                found[ids.PodUid(match[1].replace("_", "-"))] = None
    return tuple(found)
