"""`nvidia-smi topo -m` and `nvidia-smi nvlink`.

Layout: outputs in public repositories. Assumed: the affinity columns of a machine whose host is not
described (simulator/monitor_calls.py).
"""

from collections.abc import Iterator, Sequence

from simulator import client, codes, monitor_calls
from simulator.smi import arguments, refusal, selection
from simulator.smi.arguments import Option

_TOPO = (Option("matrix", ("-m", "--matrix")), Option("help", ("-h", "--help")))
_NVLINK = (
    arguments.ID,
    Option("status", ("-s", "--status")),
    Option("capabilities", ("-c", "--capabilities")),
    Option("help", ("-h", "--help")),
)
_NEAR = {
    codes.TopologyLevel.INTERNAL: "PSB",
    codes.TopologyLevel.SINGLE: "PIX",
    codes.TopologyLevel.MULTIPLE: "PXB",
    codes.TopologyLevel.HOSTBRIDGE: "PHB",
    codes.TopologyLevel.NODE: "NODE",
    codes.TopologyLevel.SYSTEM: "SYS",
}
_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes
  NODE = Connection traversing PCIe as well as the interconnect between PCIe host bridges of a node
  PHB  = Connection traversing PCIe as well as a PCIe host bridge
  PXB  = Connection traversing several PCIe bridges
  PIX  = Connection traversing at most one PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""
_CAPABILITIES = (
    "P2P is supported",
    "Access to system memory supported",
    "P2P atomics supported",
    "System memory atomics supported",
    "SLI is supported",
    "Link is supported",
)


def topo(nvml: selection.Nvml, argv: Sequence[str]) -> Iterator[str]:
    """How each GPU reaches each other, and which processors are near it."""
    given = arguments.parse(argv, _TOPO)
    if "matrix" not in given:
        raise refusal.usage("topo takes -m.")
    targets = list(selection.targets(nvml, None))
    names = [f"GPU{target.index}" for target in targets]
    yield "\t".join(["", *names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]) + "\n"
    for name, target in zip(names, targets, strict=True):
        ways = [_way(nvml, target.handle, other.handle) for other in targets]
        first, count = nvml.device_get_cpu_affinity(target.handle)
        node = first // monitor_calls.CPUS_PER_NUMA_NODE
        yield "\t".join([name, *ways, f"{first}-{first + count - 1}", str(node), "N/A"]) + "\n"
    yield _LEGEND


def _way(nvml: selection.Nvml, handle: client.Handle, other: client.Handle) -> str:
    if handle == other:
        return " X "
    if nvml.device_get_p2p_status(handle, other, codes.P2PIndex.NVLINK) == codes.P2PStatus.OK:
        return f"NV{_links(nvml, handle)}"
    level = nvml.device_get_topology_common_ancestor(handle, other)
    return _NEAR[codes.TopologyLevel(level)]


def _links(nvml: selection.Nvml, handle: client.Handle) -> int:
    (count,) = nvml.device_get_field_values(handle, [codes.Field.NVLINK_LINK_COUNT], [0])
    return count.value


def nvlink(nvml: selection.Nvml, argv: Sequence[str], ids: str | None) -> Iterator[str]:
    """`-s`: the speed of each link; `-c`: what each can do. A GPU without links is left out."""
    given = arguments.parse(argv, _NVLINK)
    ids = given.get("id", ids)
    if not {"status", "capabilities"} & given.keys():
        raise refusal.usage("nvlink takes -s or -c.")
    for target in selection.targets(nvml, ids):
        links = _links(nvml, target.handle)
        if not links:
            continue
        name, uuid = nvml.device_get_name(target.handle), nvml.device_get_uuid(target.handle)
        yield f"GPU {target.index}: {name} (UUID: {uuid})\n"
        for link in range(links):
            if "status" in given:
                yield f"\t Link {link}: {_speed(nvml, target.handle, link)} GB/s\n"
            else:
                yield from _abilities(nvml, target.handle, link)


def _speed(nvml: selection.Nvml, handle: client.Handle, link: int) -> str:
    (speed,) = nvml.device_get_field_values(handle, [codes.Field.NVLINK_GET_SPEED], [link])
    return f"{speed.value / 1000:g}"


def _abilities(nvml: selection.Nvml, handle: client.Handle, link: int) -> Iterator[str]:
    for number, ability in enumerate(_CAPABILITIES):
        has = nvml.device_get_nv_link_capability(handle, link, number)
        yield f"\t Link {link}, {ability}: {str(has).lower()}\n"
