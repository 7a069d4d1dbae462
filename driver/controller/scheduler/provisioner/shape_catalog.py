"""What shapes are like: by their document, and by the nodes of them that were there."""

import base64
from collections.abc import Iterator

import structlog

from driver import errors, ids
from driver.controller.commit import write_pool
from driver.controller.scheduler import state
from driver.kube import gvr
from driver.resources.core import nodes
from driver.resources.dra import pools
from driver.scheduling.provisioning import node_template, observed_shapes
from driver.scheduling.provisioning import settings as provisioning_settings

_log = structlog.get_logger(__name__)
_KEY_END = ".json.gz"


class ShapeCatalog:
    """On the decider's thread; what it learns is written on the pool."""

    def __init__(
        self,
        world: state.SchedulerContext,
        tools: write_pool.WriteDeps,
        how: provisioning_settings.ProvisionerSettings,
        driver: str,
    ) -> None:
        self._world = world
        self._tools = tools
        self._how = how
        self._written = {
            one.name: node_template.from_document(one, driver) for one in how.document.shapes
        }
        self._driver = driver
        self._seen: dict[str, observed_shapes.ObservedShape] | None = None
        self._kept: dict[str, bytes] = {}
        self._looked: dict[str, pools.Pool] = {}
        self._told: set[tuple[str, str]] = set()

    def load(self) -> None:
        """Read what was learned before. Raises ApiError; the next look tries again."""
        if self._seen is not None:
            return
        try:
            found = self._tools.writer.get(
                gvr.CONFIG_MAPS, self._how.observed_configmap, self._how.namespace
            )
        except errors.NotFound:
            found = {}
        self._seen = {}
        for key, text in (found.get("binaryData") or {}).items():
            self._read(key.removesuffix(_KEY_END), text)

    def _read(self, name: str, text: str) -> None:
        try:
            packed = base64.b64decode(text)
            seen = observed_shapes.decode(
                packed, f"ConfigMap {self._how.observed_configmap}, {name}"
            )
        except (errors.BadInput, ValueError) as error:
            _log.warning("not learned", error=str(error))
            return
        self._kept[name] = packed
        self._past[name] = seen

    @property
    def _past(self) -> dict[str, observed_shapes.ObservedShape]:
        if self._seen is None:
            self._seen = {}
        return self._seen

    def shapes(self) -> tuple[node_template.NodeTemplate, ...]:
        """Every shape, as far as it is known now."""
        return tuple(
            observed_shapes.apply_observed(
                one, self._past.get(name, observed_shapes.ObservedShape())
            )
            for name, one in self._written.items()
        )

    def measured(self) -> frozenset[str]:
        """The shapes whose start-up is that of nodes that came."""
        return frozenset(name for name, past in self._past.items() if past.startup_s)

    def get(self, name: str) -> node_template.NodeTemplate | None:
        """The shape of that name; None where the document has it no more."""
        one = self._written.get(name)
        return (
            observed_shapes.apply_observed(
                one, self._past.get(name, observed_shapes.ObservedShape())
            )
            if one
            else None
        )

    def node_shape(self, node: nodes.Node) -> node_template.NodeTemplate | None:
        """The shape that a node is of."""
        return next((one for one in self._written.values() if one.matches(node)), None)

    def learn(self) -> Iterator[tuple[nodes.Node, str, str]]:
        """Learn from the node of each shape that has the most GPUs; where its document is wrong.

        A node with a GPU missing does not stand for its shape as long as there is a better one.
        """
        for place, said in enumerate(self._how.document.shapes):
            best = max(self._complete(said.name), default=None, key=_by_gpus)
            if best is None or self._looked.get(said.name) is best[1]:
                continue
            node, found = best
            self._looked[said.name] = found
            before = self._past.get(said.name, observed_shapes.ObservedShape())
            there = self._world.view.pods_on(node.name).values()
            self._keep(said.name, observed_shapes.observe_node(before, node, found, there))
            for path, words in observed_shapes.document_errors(place, said, node, found):
                if (path, words) not in self._told:
                    self._told.add((path, words))
                    yield node, path, words

    def record_startup(self, name: str, took_s: float) -> None:
        """A node of a shape took so long to come."""
        self._keep(name, self._past.get(name, observed_shapes.ObservedShape()).with_startup(took_s))

    def is_complete(self, name: ids.NodeName) -> pools.Pool | None:
        """The pool of our driver that a node has, once all of it is published."""
        view = self._world.view
        if name not in view.nodes:
            return None
        for share in view.reachable_pools(name):
            local = share.pool.driver == self._driver and share.slices and not share.problem
            if local and share.slices[0][0].node == name:
                return share.pool
        return None

    def _complete(self, name: str) -> Iterator[tuple[nodes.Node, pools.Pool]]:
        one = self._written[name]
        for node in self._world.view.nodes.values():
            if one.matches(node) and node.ready:
                found = self.is_complete(node.name)
                if found is not None:
                    yield node, found

    def _keep(self, name: str, seen: observed_shapes.ObservedShape) -> None:
        self._past[name] = seen
        packed = observed_shapes.encode(seen)
        if self._kept.get(name) != packed:
            self._kept[name] = packed
            self._tools.pool.submit(self._write, dict(self._kept))

    def _write(self, kept: dict[str, bytes]) -> None:
        data = {f"{k}{_KEY_END}": base64.b64encode(v).decode() for k, v in kept.items()}
        name, namespace = self._how.observed_configmap, self._how.namespace
        try:
            try:
                self._tools.writer.patch(
                    gvr.CONFIG_MAPS, name, {"binaryData": data}, namespace=namespace
                )
            except errors.NotFound:
                self._tools.writer.create(
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


def _by_gpus(one: tuple[nodes.Node, pools.Pool]) -> tuple[int, str]:
    return observed_shapes.gpu_count(one[1]), one[0].name
