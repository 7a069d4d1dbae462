"""Bounded cache of per-node results, keyed by workload signature. Pure."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import cast

from driver import ids, reasons
from driver.resources.core import nodes
from driver.scheduling.allocator import types as allocator_types
from driver.scheduling.allocator.capacity import node_capacity
from driver.scheduling.allocator.equivalence import equivalent_devices, node_signature
from driver.scheduling.allocator.node_filter import filters, node_resources_fit
from driver.scheduling.allocator.results import node_result
from driver.scheduling.snapshot import snapshot

_MAX_SHAPES = 256
_MIN_RESULTS, _RESULT_FACTOR = 256, 64
"""Bounds of all cached results, and per node: about 5 KiB each."""
_MIN_SHAPE_RESULTS, _SHAPE_FACTOR, _MAX_SHAPE_RESULTS = 64, 4, 4096
"""Bounds of the results of one signature, and per node."""
_MIN_DEVICES, _MAX_DEVICES = 2_000, 100_000
"""Bounds of devices in all cached options: 25 to 50 MB at the maximum."""
_DEVICE_FACTOR = 8
"""Maximum mean number of options per device of the cluster: more are rarely used."""
_Equivalent = list[list[equivalent_devices.EquivalentCandidates]]
_Entry = node_result.DeviceOptions | allocator_types.NodeRejection | _Equivalent
"""Options of a node, or the candidates of nodes without devices in use."""


class DeviceOptionsCache:
    """Cache of device options by request and device signature, for all policies.

    The entries used last are retained.
    """

    def __init__(self, most: int = _MAX_DEVICES) -> None:
        self._max_devices = most
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._devices = 0

    def resize(self, view: snapshot.Snapshot) -> None:
        """Set the capacity that suits the cluster's devices; the next entry has it kept."""
        most = _DEVICE_FACTOR * sum(pool.size for pool in view.pools.values())
        self._max_devices = min(max(most, _MIN_DEVICES), _MAX_DEVICES)

    def get(
        self,
        shape: Hashable,
        devices: node_signature.DeviceSignature,
        query: node_result.NodeQuery,
        node: nodes.Node,
    ) -> node_result.DeviceOptions | allocator_types.NodeRejection:
        """Return the cached options, or compute them."""
        key = shape, devices
        options = self._entries.get(key)
        if options is None:
            options = self._compute(shape, devices, query, node)
            self._add(key, options)
        self._entries.move_to_end(key)
        return cast("node_result.DeviceOptions | allocator_types.NodeRejection", options)

    def _compute(
        self,
        shape: Hashable,
        signature: node_signature.DeviceSignature,
        query: node_result.NodeQuery,
        node: nodes.Node,
    ) -> node_result.DeviceOptions | allocator_types.NodeRejection:
        """Return the options of a node, checking none but its devices in use if it can."""
        shares = query.view.reachable_pools(node.name)
        devices = equivalent_devices.devices_in_use(query.view, shares, signature)
        key = shape, tuple(pool for pool, _ in signature)
        equivalent = cast("_Equivalent | None", self._entries.get(key))
        if equivalent is None:
            idle = node_result.find_candidates(query, devices.idle(), shares)
            equivalent = [
                [equivalent_devices.EquivalentCandidates(options) for options in alternatives]
                for alternatives in idle
            ]
            self._add(key, equivalent)
        self._entries.move_to_end(key)
        request_options = [
            [
                options.find(devices, query.filters.device_filter(spec.claim_index))
                for options in alternatives
            ]
            for spec, alternatives in zip(query.requests, equivalent, strict=True)
        ]
        return node_result.build_options(query, node, devices, request_options)

    def _add(self, key: Hashable, entry: _Entry) -> None:
        self._entries[key] = entry
        self._devices += _weight(entry)
        while self._devices > self._max_devices and len(self._entries) > 1:
            self._devices -= _weight(self._entries.popitem(last=False)[1])


def _weight(entry: _Entry) -> int:
    """Return the number of devices that an entry holds."""
    if isinstance(entry, node_result.DeviceOptions):
        return len(entry.problem.devices)
    if isinstance(entry, allocator_types.NodeRejection):
        return 1
    return sum(options.size for alternatives in entry for options in alternatives)


class _Shape:
    """A workload signature whose hash is computed once."""

    __slots__ = ("_hash", "_signature")

    def __init__(self, signature: Hashable) -> None:
        self._signature = signature
        self._hash = hash(signature)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Shape) and self._signature == other._signature)


class SignatureResults:
    """Results for one device request, by node signature."""

    def __init__(
        self,
        shape: Hashable = None,
        options: DeviceOptionsCache | None = None,
        most: int = _MAX_SHAPE_RESULTS,
    ) -> None:
        """Create the cache; the same request under other policies may share `options`.

        Of more than `most` results the oldest goes: memory that many leave at once stays taken.
        """
        self._results: dict[Hashable, node_result.Fit | allocator_types.NodeRejection] = {}
        self.most = most
        self._shape = _Shape(shape)
        self.size = 0
        """Number of results."""
        self._options = DeviceOptionsCache() if options is None else options

    def get(
        self, query: node_result.NodeQuery, node: nodes.Node
    ) -> node_result.Fit | allocator_types.NodeRejection:
        """Return the result of a node."""
        return self.state_result(query, node, query.capacities.state(query.view, node))

    def state_result(
        self, query: node_result.NodeQuery, node: nodes.Node, state: node_capacity.NodeState
    ) -> node_result.Fit | allocator_types.NodeRejection:
        """Return the result of a node with its state.

        Devices alone decide whether a node is rejected, unless its search was given up.
        """
        devices = state.devices
        if devices is None:
            return node_result.device_result(query, node)
        result = self._results.get(devices)
        if result is not None:
            return result
        signature = node_result.state_signature(query, state)
        result = self._results.get(signature)
        if result is None:
            while len(self._results) >= self.most:
                del self._results[next(iter(self._results))]
            options = self._options.get(self._shape, devices, query, node)
            result = node_result.best_result(query, node, options)
            self._results[devices if _is_final(result) else signature] = result
            self.size = len(self._results)
        return result


def _is_final(result: node_result.Fit | allocator_types.NodeRejection) -> bool:
    """Return whether no policy changes a result: there is no solution, or an error."""
    return (
        not isinstance(result, node_result.Fit)
        and not result.budget_exceeded
        and result.node_reason in {None, reasons.Reason.ALLOCATOR_ERROR}
    )


class ResultCache:
    """Results of the signatures used last; valid until a pool changes."""

    def __init__(self, view: snapshot.Snapshot) -> None:
        self._results: OrderedDict[Hashable, SignatureResults] = OrderedDict()
        self._options = DeviceOptionsCache()
        self._cluster: tuple[int, int] | None = None
        self.resize(view)

    def resize(self, view: snapshot.Snapshot) -> None:
        """Set the bounds that suit the cluster: its nodes may have come since it was created."""
        cluster = view.generation, len(view.nodes)
        if cluster == self._cluster:
            return
        self._cluster = cluster
        self._options.resize(view)
        self._max_results = max(_RESULT_FACTOR * len(view.nodes), _MIN_RESULTS)
        most = max(_SHAPE_FACTOR * len(view.nodes), _MIN_SHAPE_RESULTS)
        self._max_shape_results = min(most, _MAX_SHAPE_RESULTS)
        for results in self._results.values():
            results.most = self._max_shape_results

    def get(self, shape: Hashable, policies: Hashable = None) -> SignatureResults:
        """Return the results of a device signature; policies share the device options."""
        key = shape, policies
        results = self._results.get(key)
        if results is None:
            results = SignatureResults(shape, self._options, self._max_shape_results)
            self._results[key] = results
        self._results.move_to_end(key)
        while len(self._results) > _MAX_SHAPES or self._size > self._max_results:
            self._results.popitem(last=False)
        return results

    @property
    def _size(self) -> int:
        return sum([result.size for result in self._results.values()])


def node_evaluator(
    query: node_result.NodeQuery, results: SignatureResults | None
) -> Callable[[ids.NodeName], node_result.NodeResult]:
    """Return a function that evaluates a node by its name, as `node_result.evaluate` does.

    A node with too little free for the pod is PENDING: `node_result.evaluate` explains it.
    """
    view, driver = query.view, query.allocator_settings.rules.driver
    pod, all_nodes, state_of = query.workload.pod, view.nodes, query.capacities.state
    evaluate_devices = node_result.device_result if results is None else results.get
    is_simple = not query.workload.is_bound and filters.depends_on_resources_alone(
        view, query.workload
    )
    has_room = node_resources_fit.has_room

    def evaluate(name: ids.NodeName) -> node_result.NodeResult:
        node = all_nodes[name]
        state = state_of(view, node)
        if is_simple and state.is_open and (not driver or driver in state.drivers):
            fits = has_room(state.free, pod)
            if fits is False:
                return node_result.PENDING
            if fits:
                if results is None:
                    return node_result.device_result(query, node)
                return results.state_result(query, node, state)
        return node_result.evaluate(query, node, evaluate_devices)

    return evaluate
