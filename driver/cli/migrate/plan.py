"""The whole plan as a value: what each setting became, what to install, and node by node."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from driver import errors
from driver.api import offerings
from driver.cli.migrate import classes, config_files, device_plugin_config, settings
from driver.cli.migrate import nodes as migrate_nodes
from driver.cli.migrate import offerings as migrate_offerings
from driver.cli.migrate import steps as migrate_steps
from driver.cli.migrate.offerings import Target
from driver.cli.migrate.settings import Finding
from driver.devices import faces
from driver.resources import extended_resources


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Options of a migration.

    `scheduler`: kube-scheduler allocates, without Ration's controller. `per_gpu`: apply `devices`
    literally. `default`: the configuration of nodes without a label, over what the files say.
    `operator`: the GPU operator runs the device plugin; None: detect by the files and the nodes.
    """

    scheduler: bool = False
    per_gpu: bool = False
    default: str = ""
    operator: bool | None = None


@dataclass(frozen=True, slots=True)
class Migrated:
    """One configuration: `nodes` that have it, None where nodes were not given."""

    name: str
    config: device_plugin_config.Config
    offer: migrate_offerings.NodeOffer
    findings: tuple[Finding, ...]
    usual: bool
    nodes: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class NodeSteps:
    """A node, in the order in which nodes are taken over."""

    node: migrate_nodes.Node
    config: str
    steps: migrate_steps.Steps


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is printed. `notes` are of what the configurations stood in."""

    operator: bool
    scheduler: bool
    configs: tuple[Migrated, ...]
    notes: tuple[Finding, ...]
    replacements: tuple[classes.Replacement, ...]
    rules: tuple[offerings.Rule, ...]
    values: Mapping[str, object]
    turns: tuple[NodeSteps, ...]
    open: tuple[str, ...]

    @property
    def findings(self) -> Iterator[Finding]:
        """Yield the findings of all configurations, and around them."""
        yield from self.notes
        for migrated in self.configs:
            yield from migrated.findings


@dataclass(frozen=True, slots=True)
class _World:
    """Inputs: configurations by name, and nodes with the name of theirs."""

    found: config_files.ConfigFiles
    nodes: tuple[migrate_nodes.Node, ...] | None
    selection: migrate_nodes.Selection
    options: PlanOptions
    operator: bool
    having: Mapping[str, tuple[migrate_nodes.Node, ...]] = field(default_factory=dict)


def build_plan(
    result: config_files.ConfigFiles,
    nodes: tuple[migrate_nodes.Node, ...] | None,
    options: PlanOptions,
) -> Plan:
    """The plan for what was found.

    Raises:
        BadInput: a configuration is one that the device plugin refuses, or the default is none.
    """
    world = _world(result, nodes, options)
    configs = tuple(_migrated(name, world) for name in _names(world))
    resources = _resources(configs, world)
    replaced = classes.replacements(resources, scheduler=options.scheduler)
    rules = tuple(_rules(configs))
    return Plan(
        operator=world.operator,
        scheduler=options.scheduler,
        configs=configs,
        notes=result.notes,
        replacements=replaced,
        rules=rules,
        values=_values(configs, replaced, rules, scheduler=options.scheduler),
        turns=tuple(_turns(world)),
        open=tuple(_open(world, configs, replaced)),
    )


def _world(
    result: config_files.ConfigFiles,
    nodes: tuple[migrate_nodes.Node, ...] | None,
    options: PlanOptions,
) -> _World:
    default = options.default or result.default
    if default and default not in result.configs:
        existing = ", ".join(result.configs) or "none"
        raise errors.BadInput("default", f"{default} is no configuration here", existing)
    labelled = any(migrate_nodes.OPERATOR_LABEL in item.labels for item in nodes or ())
    operator = (result.operator or labelled) if options.operator is None else options.operator
    selection = migrate_nodes.Selection(tuple(result.configs), default, operator)
    having: dict[str, list[migrate_nodes.Node]] = {}
    for node in nodes or ():
        name = selection.node_config(node)
        if node.has_gpus and name is not None:
            having.setdefault(name, []).append(node)
    node_list = {name: tuple(members) for name, members in having.items()}
    return _World(result, nodes, selection, options, operator, node_list)


def _names(world: _World) -> list[str]:
    """Return the files' names; the plugin's defaults too where a node has them."""
    usual = world.selection.usual
    bare = migrate_nodes.PLUGINS_DEFAULTS
    needed = bare in world.having or (usual == bare and world.nodes is None)
    return [*world.found.configs, *([bare] if needed else [])]


def _migrated(name: str, world: _World) -> Migrated:
    body = world.found.body(name)
    config = device_plugin_config.read(body, f"{name or 'settings'}: ")
    situation = settings.SettingContext(
        config, per_gpu=world.options.per_gpu, scheduler=world.options.scheduler
    )
    nodes = world.having.get(name, ()) if world.nodes is not None else None
    return Migrated(
        name=name,
        config=config,
        offer=migrate_offerings.offer(config, per_gpu=world.options.per_gpu),
        findings=settings.setting_findings(body, situation),
        usual=world.selection.usual == name,
        nodes=None if nodes is None else tuple(node.name for node in nodes),
    )


def _in_use(configs: Iterable[Migrated]) -> Iterator[Migrated]:
    for migrated in configs:
        if migrated.usual or migrated.nodes is None or migrated.nodes:
            yield migrated


def _resources(configs: Iterable[Migrated], world: _World) -> Mapping[str, frozenset[Target]]:
    """Map each old resource to its targets, over all configurations in use and nodes."""
    stood: dict[str, frozenset[Target]] = {}
    for config in _in_use(configs):
        nodes = world.having.get(config.name, ()) if config.config.is_mixed else ()
        parts = (pair for node in nodes for pair in _parts(node))
        for resource, targets in (*config.offer.resources, *parts):
            stood[resource] = stood.get(resource, frozenset()) | targets
    return stood


def _parts(node: migrate_nodes.Node) -> Iterator[tuple[str, frozenset[Target]]]:
    """The resources of MIG devices that a node has."""
    for resource in node.resources:
        profile = extended_resources.mig_profile(
            resource.removesuffix(device_plugin_config.SHARED_SUFFIX)
        )
        if profile is not None:
            yield resource, frozenset({Target(faces.Kind.MIG, profile)})


def _rules(configs: Iterable[Migrated]) -> Iterator[offerings.Rule]:
    """The usual configuration's for all nodes, then those of others for the nodes that have them.

    Each rule says its faces, so that a later one takes the place of all before it.
    """
    in_use = tuple(_in_use(configs))
    for migrated in in_use:
        if migrated.usual:
            yield from migrated.offer.rules
    for migrated in in_use:
        if not migrated.usual and migrated.nodes:
            for rule in migrated.offer.rules:
                yield rule.model_copy(update={"nodes": tuple(sorted(migrated.nodes))})


def _values(
    configs: tuple[Migrated, ...],
    replaced: tuple[classes.Replacement, ...],
    rules: tuple[offerings.Rule, ...],
    *,
    scheduler: bool,
) -> Mapping[str, object]:
    on = {"nodeSelector": {migrate_steps.TAKEN: "true"}}
    plugin: dict[str, object] = {**on, "offerings": [rule_document(rule) for rule in rules]}
    values: dict[str, object] = {"kubeletPlugin": plugin, "mps": on}
    root = _driver_root(configs)
    if root != "/":
        values["driverRoot"] = root
    if scheduler:
        values |= {"allocator": "scheduler", "controller": {"enabled": False}}
        shared = {target.kind for rule in replaced for target in rule.targets} & faces.SHARED_KINDS
        if shared:
            # What the device plugin did too: kube-scheduler knows no namespaces in this (D18).
            plugin["shareDomain"] = "cluster"
    flags = [rule.flag for rule in replaced if rule.flag]
    if flags:
        values["admission"] = {"extraArgs": flags}
    tables = classes.values(replaced)
    return values | ({"deviceClasses": tables} if tables else {})


def rule_document(rule: offerings.Rule) -> Mapping[str, object]:
    """A rule as YAML has it, without what it does not say."""
    built = rule.model_dump(mode="json", exclude_defaults=True)
    if rule.faces is not None:
        built["faces"] = sorted(kind.value for kind in rule.faces)
    return built


def _driver_root(configs: Iterable[Migrated]) -> str:
    return (*_roots(configs), "/")[0]


def _roots(configs: Iterable[Migrated]) -> tuple[str, ...]:
    """Return the driver roots of the configurations in use, the usual one's first."""
    ordered = sorted(_in_use(configs), key=lambda item: not item.usual)
    flagses = (item.config.flags and item.config.flags.nvidia_driver_root for item in ordered)
    return tuple(dict.fromkeys(settings.driver_root(item) for item in flagses if item))


def _turns(world: _World) -> Iterator[NodeSteps]:
    """Small nodes first: the first one to try it on costs least."""
    pairs = [(node, name) for name, members in world.having.items() for node in members]
    for node, name in sorted(pairs, key=lambda pair: (pair[0].gpus, pair[0].name)):
        yield NodeSteps(node, name, migrate_steps.node_steps(node.name, operator=world.operator))


def _open(
    world: _World, configs: tuple[Migrated, ...], replaced: tuple[classes.Replacement, ...]
) -> Iterator[str]:
    """Yield what a person has to resolve."""
    for name in world.found.missing:
        yield f"ConfigMap {name} is named and was not given: kubectl get configmap {name} -o yaml"
    if world.nodes is None and any(not config.usual for config in configs):
        yield (
            "which nodes have which configuration is not known, and the values hold only that of "
            "nodes without the label: give --nodes"
        )
    if world.selection.usual is None:
        yield "nodes without the label have no configuration: say which by --default"
    for node in world.nodes or ():
        if node.has_gpus and world.selection.node_config(node) is None:
            label = node.labels.get(migrate_nodes.CONFIG_LABEL)
            yield f"node {node.name} is labelled for {label or 'none'}, which is not here: left out"
    roots = _roots(configs)
    if len(roots) > 1:
        yield f"the configurations disagree on nvidiaDriverRoot, the chart has one: {roots[0]}"
    if world.operator and not roots:
        yield "where the GPU operator brings the driver: driverRoot: /run/nvidia/driver"
    yield from (config.left for config in replaced if config.left)
