"""VolumeBinding: bound volumes must reach the node, unbound ones be bound or made for it. Pure.

A volume that is not bound and does not wait for a node keeps its pod from every node. Where no
StorageClass is known at all, nothing is said about claims that are not bound: they may not be
readable. Volumes that pods on their way to other nodes are about to have count as free, which
matters for unbound volumes that several nodes reach.
"""

from collections.abc import Iterable, Sequence

from driver import ids
from driver.resources.core import node_selectors, nodes, pods, storage, volumes
from driver.scheduling.snapshot import storage_index

_NO_PROVISIONER = "kubernetes.io/no-provisioner"


def rejection(
    held: storage_index.StorageIndex,
    node: nodes.Node,
    pod: pods.Pod,
    others: Iterable[pods.Pod] = (),
) -> str:
    """Return why a volume of the pod cannot be used on the node, in words; "" for none.

    `others` are the pods of the node: those not yet bound will have their volumes bound there.
    """
    claims: list[volumes.VolumeClaim] = []
    for name in pod.volume_claims:
        claim = held.claims.get(ids.Key(f"{pod.namespace}/{name}"))
        unusable = (
            held.missing_claim_message() if claim is None else _unusable_claim(pod, name, claim)
        )
        if claim is None or unusable:
            return f"volume claim {name} {unusable}"
        claims.append(claim)
    unbound = [claim for claim in claims if not claim.bound]
    early = next((claim.name for claim in unbound if not _waits_for_node(held, claim)), None)
    if early is not None:
        return f"volume claim {early} is not bound yet"
    message = _unreachable_volume(held, node, [claim for claim in claims if claim.bound])
    if message or not unbound or not held.storage_classes:
        return message
    return _unbindable_claim(held, node, unbound, _assumed_volumes(held, node, unbound, others))


def _assumed_volumes(
    held: storage_index.StorageIndex,
    node: nodes.Node,
    own: Sequence[volumes.VolumeClaim],
    others: Iterable[pods.Pod],
) -> set[str]:
    """The volumes that claims of pods on their way to the node are about to be bound to.

    kube-scheduler assumes them when it binds the pod (AssumePodVolumes), which it has not yet.
    """
    taken: set[str] = set()
    arriving = [pod for pod in others if pod.node is None and pod.volume_claims]
    for pod in sorted(arriving, key=lambda pod: pod.key):
        keys = (ids.Key(f"{pod.namespace}/{name}") for name in pod.volume_claims)
        claims = (held.claims.get(key) for key in keys)
        pod_claims = [claim for claim in claims if claim is not None and claim not in own]
        _choose_volumes(
            held, node, [claim for claim in pod_claims if _waits_for_node(held, claim)], taken
        )
    return taken


def _unusable_claim(pod: pods.Pod, name: str, claim: volumes.VolumeClaim) -> str:
    if claim.lost:
        return "has lost its volume"
    if claim.deleting:
        return "is being deleted"
    if name in pod.ephemeral_claims and claim.owner != pod.uid:
        return "is another pod's"
    return ""


def _waits_for_node(held: storage_index.StorageIndex, claim: volumes.VolumeClaim) -> bool:
    """Return whether its volume waits for a node to be chosen (WaitForFirstConsumer)."""
    if claim.volume:
        return False
    if not held.storage_classes:
        return True
    maker = held.storage_classes.get(claim.storage_class) if claim.storage_class else None
    return maker is not None and maker.waits_for_consumer


def _unreachable_volume(
    held: storage_index.StorageIndex, node: nodes.Node, bound: Iterable[volumes.VolumeClaim]
) -> str:
    for claim in bound:
        volume = held.persistent_volumes.get(claim.volume)
        if volume is None:
            return f"volume {claim.volume} {held.missing_volume_message()}"
        if not reaches(volume, node):
            return f"volume {claim.volume} is bound elsewhere"
    return ""


def reaches(volume: volumes.Volume, node: nodes.Node) -> bool:
    """Return whether a volume's node affinity matches; fields of the node are ignored."""
    return volume.selector is None or any(_matches(term, node) for term in volume.selector.terms)


def _matches(term: node_selectors.Term, node: nodes.Node) -> bool:
    if not term.labels and not term.fields:
        return False
    return all(need.is_satisfied(node.labels.get(need.key)) for need in term.labels)


def _unbindable_claim(
    held: storage_index.StorageIndex,
    node: nodes.Node,
    unbound: Sequence[volumes.VolumeClaim],
    taken: set[str],
) -> str:
    """Return the first claim without a volume that cannot be provisioned for the node either."""
    if any(claim.selected is not None and claim.selected != node.name for claim in unbound):
        return "a volume is being made for another node"
    to_make = [claim for claim in unbound if claim.selected is not None]
    to_make += _choose_volumes(held, node, unbound, taken)
    for claim in to_make:
        lacking = _provision_rejection(held, node, claim)
        if lacking:
            return lacking
    return ""


def _choose_volumes(
    held: storage_index.StorageIndex,
    node: nodes.Node,
    unbound: Iterable[volumes.VolumeClaim],
    taken: set[str],
) -> list[volumes.VolumeClaim]:
    """Add the volumes that claims are bound to, smallest first; return the claims without one."""
    unmatched = []
    open_claims = (claim for claim in unbound if claim.selected is None)
    for claim in sorted(open_claims, key=lambda claim: claim.size or 0):
        match = _matching_volume(claim, held.class_volumes(claim.storage_class), node, taken)
        if match is None:
            unmatched.append(claim)
        else:
            taken.add(match.name)
    return unmatched


def _matching_volume(
    claim: volumes.VolumeClaim,
    volumes_of_class: Iterable[volumes.Volume],
    node: nodes.Node,
    taken: set[str],
) -> volumes.Volume | None:
    """Return the smallest volume that fits; one reserved for the claim first (FindMatching)."""
    best: volumes.Volume | None = None
    for volume in volumes_of_class:
        if volume.name in taken or not _satisfies_claim(claim, volume):
            continue
        near = reaches(volume, node)
        if volume.claim is not None:
            if volume.claim.names(claim):
                return volume if near else None
            continue
        chosen = claim.selector is None or claim.selector.matches(volume.labels)
        usable = volume.available and chosen and near and claim.modes <= volume.modes
        if usable and (best is None or volume.size < best.size):
            best = volume
    return best


def _satisfies_claim(claim: volumes.VolumeClaim, volume: volumes.Volume) -> bool:
    """Return whether a volume's spec satisfies the claim."""
    return (
        volume.size >= (claim.size or 0)
        and volume.block == claim.block
        and volume.attributes_class == claim.attributes_class
        and not volume.deleting
    )


def _provision_rejection(
    held: storage_index.StorageIndex, node: nodes.Node, claim: volumes.VolumeClaim
) -> str:
    maker = held.storage_classes[claim.storage_class]
    if maker.provisioner in ("", _NO_PROVISIONER):
        return f"no volume for claim {claim.name}, and its class makes none"
    if not maker.reaches(node.labels):
        return f"StorageClass {maker.name} makes no volumes for the node (allowedTopologies)"
    if not _has_capacity(held, node, claim, maker):
        return f"no storage capacity for claim {claim.name}"
    return ""


def _has_capacity(
    held: storage_index.StorageIndex,
    node: nodes.Node,
    claim: volumes.VolumeClaim,
    maker: storage.StorageClass,
) -> bool:
    """Return whether the driver reports capacity for the claim's size (KEP-1472)."""
    driver = held.csi_drivers.get(maker.provisioner)
    if claim.size is None or driver is None or not driver.tracks_capacity:
        return True
    needed = -(-claim.size // 10**9)
    return any(
        capacity.storage_class == maker.name
        and capacity.max_size is not None
        and capacity.max_size >= needed
        and capacity.nodes is not None
        and capacity.nodes.matches(node.labels)
        for capacity in held.capacities
    )
