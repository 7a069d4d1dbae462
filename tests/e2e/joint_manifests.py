"""Manifests over a GPU driver and a NIC driver, as users write them, for whoever allocates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.e2e import other_drivers
from tests.fakes.nic_driver import pools
from tests.support.builders import joint_claims as joint
from tests.support.builders import objects

Raw = dict[str, Any]
NIC = pools.DRIVER
LANE = "example.com/lane"
"""Label of a node: the lane whose manifests run there."""
FAR = f"device.attributes['{NIC}'].?fabric.orValue(false)"
NEAR = f"!{FAR}"
TAINTED = f"device.attributes['{NIC}'].?tainted.orValue(false)"
SHARED = f"device.attributes['{NIC}'].?shared.orValue(false)"
"""NICs of a node that several claims may have, each with a part of the bandwidth."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Objects that are created together; `pods` of them are Pods or replicas.

    `runs` of them run under kube-scheduler, by the API's own rules, and as many at least under our
    controller: more where it has more to give.
    """

    name: str
    objects: tuple[Raw, ...]
    pods: int = 1
    runs: int = 1
    more: int = 0

    @property
    def controller_runs(self) -> int:
        """Pods that run under our controller."""
        return self.runs + self.more

    def in_lane(self, lane: int) -> "Manifest":
        """Return the manifest with its pods on the nodes of a lane."""
        return replace(
            self, objects=tuple(_on_nodes(obj, lane_labels(lane)) for obj in self.objects)
        )


def lane_labels(lane: int) -> dict[str, str]:
    """Return the label of a lane's nodes."""
    return {LANE: str(lane)}


def fabric(lane: int) -> pools.Pool:
    """Return two devices that every node of a lane reaches."""
    nics = tuple(pools.Nic(f"far-{number}", attributes={"fabric": True}) for number in range(2))
    expressions = [{"key": LANE, "operator": "In", "values": [str(lane)]}]
    selector = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return pools.Pool(f"fabric-{lane}", nics, {"nodeSelector": selector})


def odd_nics() -> tuple[pools.Nic, ...]:
    """Return a NIC of a node that claims share, and one that is tainted."""
    bandwidth = {"value": "100G", "requestPolicy": {"default": "10G"}}
    repair = ({"key": "example.com/repair", "effect": "NoSchedule"},)
    return (
        pools.Nic(
            "nic-s", attributes={"shared": True}, capacity={"bandwidth": bandwidth}, shared=True
        ),
        pools.Nic("nic-t", attributes={"tainted": True}, taints=repair),
    )


def _on_nodes(obj: Raw, labels: Mapping[str, str]) -> Raw:
    """Return an object; the pods that it is or makes select nodes by labels too."""
    if obj["kind"] == "Pod":
        spec = obj["spec"]
        return {**obj, "spec": {**spec, "nodeSelector": {**spec["nodeSelector"], **labels}}}
    if "template" not in obj["spec"]:
        return obj
    template = obj["spec"]["template"]
    inner = _on_nodes({"kind": "Pod", "spec": template["spec"]}, labels)["spec"]
    return {**obj, "spec": {**obj["spec"], "template": {**template, "spec": inner}}}


def nic(name: str = "nics", count: int = 1, *selectors: str, **more: Any) -> Raw:
    """Return a request for NICs of the node, or for what selectors say."""
    chosen = selectors or (NEAR, f"!{SHARED}", f"!{TAINTED}")
    return objects.a_request(name, count, *chosen, deviceClassName=NIC, **more)


def gpu(name: str = "gpus", count: int = 1, *selectors: str) -> Raw:
    """Return a request for whole GPUs."""
    return objects.a_request(name, count, *selectors)


def claim(name: str, requests: Sequence[Raw], *constraints: Raw) -> Raw:
    """Return a ResourceClaim."""
    return joint.a_claim(name, {"requests": [*requests], "constraints": [*constraints]})


def pod(name: str, *claims: str, node: str = "") -> Raw:
    """Return a pod of any node that uses claims."""
    raw = other_drivers.a_pod(name, *claims, node=node)
    anywhere = {"nodeSelector": raw["spec"]["nodeSelector"] if node else {}, "tolerations": []}
    return {**raw, "spec": {**raw["spec"], **anywhere}}


def single(name: str, requests: Sequence[Raw], *constraints: Raw, runs: int = 1) -> Manifest:
    """Return one pod with one claim."""
    return Manifest(name, (claim("all", requests, *constraints), pod("pod", "all")), runs=runs)


def joined() -> list[Manifest]:
    """GPUs and NICs in one claim, with an attribute in common or without."""
    result = []
    for gpus, nics in ((1, 1), (2, 1), (2, 2), (4, 2)):
        for attribute in ("", joint.PCIE_ROOT, joint.NUMA_NODE):
            constraints = [objects.matching(attribute)] if attribute else []
            possible = attribute != joint.PCIE_ROOT or (gpus, nics) == (1, 1)
            name = f"{gpus} GPUs, {nics} NICs, {attribute.rpartition('/')[2] or 'anywhere'}"
            requests = [gpu(count=gpus), nic(count=nics)]
            result.append(single(name, requests, *constraints, runs=int(possible)))
    for count in (1, 2, 4, 8):
        pairs = joint.pairs(count)
        for request in pairs["requests"]:
            if request["name"].startswith("nic"):
                request["exactly"]["selectors"] = nic()["exactly"]["selectors"]
        objs = (joint.a_claim("all", pairs), pod("pod", "all"))
        result.append(Manifest(f"{count} pairs under a root each", objs))
    return result


def apart() -> list[Manifest]:
    """Devices that differ in an attribute."""
    return [
        single(
            f"{count} GPUs and {count} NICs, each of another root",
            [gpu(count=count), nic(count=count)],
            objects.differing(joint.PCIE_ROOT, "gpus"),
            objects.differing(joint.PCIE_ROOT, "nics"),
        )
        for count in (2, 4, 8)
    ]


def alternatives() -> list[Manifest]:
    """Requests with several subrequests."""
    many = objects.a_way("many", 64)
    few = objects.a_way("few", 2)
    nics = objects.a_way("nics", 1, NEAR, f"!{SHARED}", deviceClassName=NIC)
    far = objects.a_way("far", 1, FAR, deviceClassName=NIC)
    return [
        single("the second of two numbers of GPUs", [objects.first_available("a", many, few)]),
        single("too many GPUs or else a NIC", [objects.first_available("a", many, nics)]),
        single("a NIC or else GPUs", [objects.first_available("a", nics, few)]),
        single(
            "GPUs, and a near NIC or a far one", [gpu(), objects.first_available("a", nics, far)]
        ),
        single(
            "none of two numbers",
            [objects.first_available("a", many, many | {"name": "x"})],
            runs=0,
        ),
    ]


def network() -> list[Manifest]:
    """Devices of the whole cluster."""
    far = nic("far", 1, FAR)
    both = (claim("a", [gpu(), far]), claim("b", [gpu(), far]), pod("a", "a"), pod("b", "b"))
    three = (*both, claim("c", [far]), pod("c", "c"))
    return [
        single("a GPU and a device of the fabric", [gpu(), far]),
        single("a NIC and a device of the fabric", [nic(), far]),
        single("both devices of the fabric", [nic("far", 2, FAR)]),
        single("more than the fabric has", [gpu(), nic("far", 3, FAR)], runs=0),
        Manifest("a device of the fabric each", both, pods=2, runs=2),
        Manifest("one pod too many for the fabric", three, pods=3, runs=2),
    ]


def separate() -> list[Manifest]:
    """Several claims of one pod."""
    two = (claim("gpu", [gpu()]), claim("nic", [nic()]), pod("pod", "gpu", "nic"))
    three = (*two[:2], claim("far", [nic("far", 1, FAR)]), pod("pod", "gpu", "nic", "far"))
    most = (claim("gpu", [gpu(count=8)]), claim("nic", [nic(count=8)]), pod("pod", "gpu", "nic"))
    missing = (claim("gpu", [gpu()]), claim("nic", [nic(count=9)]), pod("pod", "gpu", "nic"))
    return [
        Manifest("a claim of each driver", two),
        Manifest("a third claim of the fabric", three),
        Manifest("all of a node in two claims", most),
        Manifest("a second claim that fits nowhere", missing, runs=0),
    ]


def shared() -> list[Manifest]:
    """Claims that several pods use, and NICs that several claims share."""
    half, most = {"bandwidth": "40G"}, {"bandwidth": "80G"}
    part = nic("part", 1, SHARED, capacity={"requests": half})
    big = nic("part", 1, SHARED, capacity={"requests": most})
    joint_claim = claim("all", [gpu(), nic()], objects.matching(joint.PCIE_ROOT))
    several = tuple(
        item
        for number in range(4)
        for item in (claim(f"c{number}", [gpu(), part]), pod(f"p{number}", f"c{number}"))
    )
    return [
        Manifest(
            "a joint claim of two pods", (joint_claim, pod("a", "all"), pod("b", "all")), 2, 2
        ),
        single("a part of a NIC", [part]),
        single("a GPU and a part of a NIC", [gpu(), part]),
        single(
            "more bandwidth than there is",
            [nic("part", 1, SHARED, capacity={"requests": {"bandwidth": "200G"}})],
            runs=0,
        ),
        Manifest("four pods with a part of a NIC each", several, 4, 4),
        single("two parts of one NIC in one claim", [part, {**part, "name": "more"}]),
        single("more parts than one NIC has", [part, {**big, "name": "more"}], runs=0),
    ]


def tolerated() -> list[Manifest]:
    """Tainted NICs: `nic-t` of each node."""
    tainted = TAINTED
    toleration = [{"key": "example.com/repair", "operator": "Exists"}]
    return [
        single("a tainted NIC without a toleration", [nic("nics", 1, tainted)], runs=0),
        single(
            "a tainted NIC with a toleration", [nic("nics", 1, tainted, tolerations=toleration)]
        ),
        single(
            "a GPU and a tainted NIC with a toleration",
            [gpu(), nic("nics", 1, tainted, tolerations=toleration)],
        ),
    ]


def selected() -> list[Manifest]:
    """CEL selectors over drivers and standard attributes."""
    numa = "device.attributes['resource.kubernetes.io'].numaNode == 1"
    root = "device.attributes['resource.kubernetes.io'].pcieRoot.startsWith('pci')"
    return [
        single(
            "a GPU and a NIC of NUMA node 1",
            [gpu("gpus", 1, numa), nic("nics", 1, NEAR, f"!{SHARED}", numa)],
        ),
        single("a NIC with a root", [nic("nics", 1, NEAR, root)]),
        single("a GPU beside a root", [gpu("gpus", 1, root)]),
        single("a NIC that no selector fits", [gpu(), nic("nics", 1, "false")], runs=0),
        single(
            "a selector that fails",
            [nic("nics", 1, f"device.attributes['{NIC}'].nothing > 1")],
            runs=0,
        ),
        single(
            "all NICs of a node",
            [
                nic("nics", 1, NEAR, f"!{SHARED}")
                | {
                    "exactly": {
                        "deviceClassName": NIC,
                        "allocationMode": "All",
                        "selectors": nic()["exactly"]["selectors"],
                    }
                }
            ],
        ),
        single("more NICs than a node has", [gpu(), nic(count=9)], runs=0),
    ]


def modes() -> list[Manifest]:
    """Parts of GPUs beside NICs, and configuration of each driver.

    Shared GPUs are published for kube-scheduler only with `--share-domain=cluster` (D18).
    """
    result = [
        single("a MIG device and a NIC", [part("gpu-mig.ration.dev"), nic()]),
        shares("a share under MPS and a NIC", "gpu-mps.ration.dev"),
        shares("a share of time and a NIC", "gpu-timeslice.ration.dev"),
    ]
    configured = claim("all", [gpu(), nic()])
    ours = objects.a_config("GpuConfig", "gpus")
    theirs = {"requests": ["nics"], "opaque": {"driver": NIC, "parameters": {"mtu": 9000}}}
    configured["spec"]["devices"]["config"] = [ours, theirs]
    result.append(Manifest("configuration of each driver", (configured, pod("pod", "all"))))
    parted = pod("pod", "all")
    (main,) = parted["spec"]["containers"]
    (entry,) = main["resources"]["claims"]
    main["resources"]["claims"] = [{**entry, "request": "gpus"}]
    side = {**main, "name": "side", "resources": {"claims": [{**entry, "request": "nics"}]}}
    parted["spec"]["containers"].append({**side, "command": ["sh", "-c", "exec sleep 3600"]})
    objs = (claim("all", [gpu(), nic()]), parted)
    return [*result, Manifest("a container for the GPU, one for the NIC", objs)]


def part(device_class: str) -> Raw:
    """Return a request for a part of a GPU."""
    return objects.a_request("gpus", deviceClassName=device_class)


def shares(name: str, device_class: str) -> Manifest:
    """Return a pod that runs only under our controller."""
    objs = (claim("all", [part(device_class), nic()]), pod("pod", "all"))
    return Manifest(name, objs, runs=0, more=1)


def crowds() -> list[Manifest]:
    """Pods that fill the nodes."""
    whole = [
        item
        for number in range(3)
        for item in (
            claim(f"c{number}", [gpu(count=8), nic(count=8)]),
            pod(f"p{number}", f"c{number}"),
        )
    ]
    return [
        Manifest("a node each for two pods", tuple(whole[:4]), 2, 2),
        Manifest("three pods for two nodes", tuple(whole), 3, 2),
    ]


def workloads() -> list[Manifest]:
    """Controllers of pods, a pair each."""
    template = joint.a_template(
        "pair",
        {
            "requests": [gpu(), nic()],
            "constraints": [objects.matching(joint.PCIE_ROOT)],
        },
    )
    result = []
    for kind in ("Deployment", "StatefulSet", "Job"):
        workload = other_drivers.a_workload(kind, "web", "pair", replicas=4)
        spec = workload["spec"]["template"]["spec"]
        spec |= {"nodeSelector": {}, "tolerations": []}
        result.append(Manifest(f"a {kind} of pairs", (template, workload), pods=4, runs=4))
    return result


def manifests() -> list[Manifest]:
    """Return all, in an order that is always the same."""
    parts: Sequence[Callable[[], list[Manifest]]] = (
        joined,
        apart,
        alternatives,
        network,
        separate,
        shared,
        tolerated,
        selected,
        modes,
        crowds,
        workloads,
    )
    return [manifest for part in parts for manifest in part()]
