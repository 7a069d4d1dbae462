"""Catalogue of node shapes: from the document, and learned from live nodes."""

import base64
from collections.abc import Iterator, Mapping

import structlog

from driver import errors, ids
from driver.controller import ports
from driver.controller.commit import write_pool
from driver.controller.scheduler import state
from driver.kube import gvr
from driver.resources.core import nodes
from driver.resources.dra import pools
from driver.scheduling.provisioning import (
    fill_simulation,
    node_template,
    observed_shapes,
    planner,
    shape_status,
)
from driver.scheduling.provisioning import settings as provisioning_settings

_log = structlog.get_logger(__name__)
_KEY_END = ".json.gz"


class ShapeCatalog:
    """On the decider's thread; what is learned is written on the pool."""

    def __init__(
        self,
        world: state.SchedulerContext,
        writer: ports.Writer,
        pool: write_pool.WritePool,
        how: provisioning_settings.ProvisionerSettings,
    ) -> None:
        self._context = world
        self._writer = writer
        self._pool = pool
        self._settings = how
        self._declared = {
            shape.name: node_template.from_document(shape, world.settings.driver)
            for shape in how.document.shapes
        }
        self._driver = world.settings.driver
        self._seen: dict[str, observed_shapes.ObservedShape] | None = None
        self._packed: dict[str, bytes] = {}
        self._learned: dict[str, pools.Pool] = {}
        self._reported: set[tuple[str, str]] = set()

    def load(self) -> None:
        """Load what was learned before. Raises ApiError; the next reconcile retries."""
        if self._seen is not None:
            return
        try:
            config_map = self._writer.get(
                gvr.CONFIG_MAPS, self._settings.observed_configmap, self._settings.namespace
            )
        except errors.NotFound:
            config_map = {}
        self._seen = {}
        for key, text in (config_map.get("binaryData") or {}).items():
            self._read(key.removesuffix(_KEY_END), text)

    def _read(self, name: str, text: str) -> None:
        try:
            packed = base64.b64decode(text)
            seen = observed_shapes.decode(
                packed, f"ConfigMap {self._settings.observed_configmap}, {name}"
            )
        except (errors.BadInput, ValueError) as error:
            _log.warning("not learned", error=str(error))
            return
        self._packed[name] = packed
        self._observed[name] = seen

    @property
    def _observed(self) -> dict[str, observed_shapes.ObservedShape]:
        if self._seen is None:
            self._seen = {}
        return self._seen

    def shapes(self) -> tuple[node_template.NodeTemplate, ...]:
        """Return every shape with what is learned."""
        return tuple(
            observed_shapes.apply_observed(
                item, self._observed.get(name, observed_shapes.ObservedShape())
            )
            for name, item in self._declared.items()
        )

    def declared_status(self) -> shape_status.ShapeStatus:
        """Return the status of the shapes before anything is learned."""
        how = self._settings
        return shape_status.build_status(how.document, {}, how.namespace, self._driver)

    def status(self, backed_off: Mapping[str, str]) -> shape_status.ShapeStatus:
        """Return the status of the shapes now."""
        return shape_status.ShapeStatus(
            self._settings.namespace, self.shapes(), self.measured(), backed_off
        )

    def supply(
        self, in_flight: fill_simulation.Nodes, backed_off: Mapping[str, str]
    ) -> planner.Supply:
        """Return what can be planned with: the shapes, and the nodes on their way."""
        most = self._settings.document.maxInFlight
        return planner.Supply(self.shapes(), in_flight, most, backed_off)

    def measured(self) -> frozenset[str]:
        """Return the shapes with a measured start-up time."""
        return frozenset(name for name, past in self._observed.items() if past.startup_s)

    def get(self, name: str) -> node_template.NodeTemplate | None:
        """Return the shape of a name; None if the document no longer has it."""
        item = self._declared.get(name)
        return (
            observed_shapes.apply_observed(
                item, self._observed.get(name, observed_shapes.ObservedShape())
            )
            if item
            else None
        )

    def node_shape(self, node: nodes.Node) -> node_template.NodeTemplate | None:
        """Return the shape of a node."""
        return next((item for item in self._declared.values() if item.matches(node)), None)

    def learn(self) -> Iterator[tuple[nodes.Node, str, str]]:
        """Learn from the best node of each shape; yield contradictions with the document.

        A node that lacks a GPU is not used while there is a better one.
        """
        for index, document in enumerate(self._settings.document.shapes):
            best = max(self._complete(document.name), default=None, key=_by_gpus)
            if best is None or self._learned.get(document.name) is best[1]:
                continue
            node, pool = best
            self._learned[document.name] = pool
            seen = self._observed.get(document.name, observed_shapes.ObservedShape())
            node_pods = self._context.view.pods_on(node.name).values()
            self._record(document.name, observed_shapes.observe_node(seen, node, pool, node_pods))
            for path, words in observed_shapes.document_errors(index, document, node, pool):
                if (path, words) not in self._reported:
                    self._reported.add((path, words))
                    yield node, path, words

    def record_startup(self, name: str, took_s: float) -> None:
        """Record a node's start-up time."""
        self._record(
            name, self._observed.get(name, observed_shapes.ObservedShape()).with_startup(took_s)
        )

    def is_complete(self, name: ids.NodeName) -> pools.Pool | None:
        """Return the node's pool of the driver once all of it is published."""
        view = self._context.view
        if name not in view.nodes:
            return None
        for share in view.reachable_pools(name):
            local = share.pool.driver == self._driver and share.slices and not share.problem
            if local and share.slices[0][0].node == name:
                return share.pool
        return None

    def _complete(self, name: str) -> Iterator[tuple[nodes.Node, pools.Pool]]:
        item = self._declared[name]
        for node in self._context.view.nodes.values():
            if item.matches(node) and node.ready:
                pool = self.is_complete(node.name)
                if pool is not None:
                    yield node, pool

    def _record(self, name: str, seen: observed_shapes.ObservedShape) -> None:
        self._observed[name] = seen
        packed = observed_shapes.encode(seen)
        if self._packed.get(name) != packed:
            self._packed[name] = packed
            packed_shapes = dict(self._packed)
            self._pool.run(lambda: self._write(packed_shapes))

    def _write(self, packed_shapes: dict[str, bytes]) -> None:
        data = {f"{k}{_KEY_END}": base64.b64encode(v).decode() for k, v in packed_shapes.items()}
        name, namespace = self._settings.observed_configmap, self._settings.namespace
        try:
            try:
                self._writer.patch(gvr.CONFIG_MAPS, name, {"binaryData": data}, namespace=namespace)
            except errors.NotFound:
                self._writer.create(
                    gvr.CONFIG_MAPS,
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "metadata": {"name": name, "namespace": namespace},
                        "binaryData": data,
                    },
                    namespace,
                )
        except errors.RationError as error:
            # The next thing that is learned brings all of it again.
            _log.warning("what was learned of shapes is not kept", error=str(error))


def _by_gpus(entry: tuple[nodes.Node, pools.Pool]) -> tuple[int, str]:
    return observed_shapes.gpu_count(entry[1]), entry[0].name
