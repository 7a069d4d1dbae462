"""The whole plan as a value: what each setting became, what to install, and node by node."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from driver import errors
from driver.api import offerings
from driver.cli.migrate import classes, config_files, device_plugin_config, settings
from driver.cli.migrate import nodes as migrate_nodes
from driver.cli.migrate import offerings as migrate_offerings
from driver.cli.migrate import steps as migrate_steps
from driver.cli.migrate.findings import Finding
from driver.cli.migrate.offerings import Target
from driver.devices import faces
from driver.resources import extended_resources


@dataclass(frozen=True, slots=True)
class Options:
    """How to migrate.

    `scheduler`: kube-scheduler allocates, without Ration's controller. `per_gpu`: take `devices`
    at its word. `default`: the configuration of nodes without a label, over what the files say.
    `operator`: the GPU operator runs the device plugin; None: see by the files and the nodes.
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
    offer: migrate_offerings.Offer
    findings: tuple[Finding, ...]
    usual: bool
    nodes: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Turn:
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
    turns: tuple[Turn, ...]
    open: tuple[str, ...]

    @property
    def findings(self) -> Iterator[Finding]:
        """Of all configurations, and around them."""
        yield from self.notes
        for one in self.configs:
            yield from one.findings


@dataclass(frozen=True, slots=True)
class _World:
    """What was read: configurations by name, and nodes with the name of the one they have."""

    found: config_files.Found
    nodes: tuple[migrate_nodes.Node, ...] | None
    selection: migrate_nodes.Selection
    options: Options
    operator: bool
    having: Mapping[str, tuple[migrate_nodes.Node, ...]] = field(default_factory=dict)


def make(
    found: config_files.Found, nodes: tuple[migrate_nodes.Node, ...] | None, options: Options
) -> Plan:
    """The plan for what was found.

    Raises:
        BadInput: a configuration is one that the device plugin refuses, or the default is none.
    """
    world = _world(found, nodes, options)
    configs = tuple(_migrated(name, world) for name in _names(world))
    resources = _resources(configs, world)
    replaced = classes.replacements(resources, scheduler=options.scheduler)
    rules = tuple(_rules(configs))
    return Plan(
        operator=world.operator,
        scheduler=options.scheduler,
        configs=configs,
        notes=found.notes,
        replacements=replaced,
        rules=rules,
        values=_values(configs, replaced, rules, scheduler=options.scheduler),
        turns=tuple(_turns(world)),
        open=tuple(_open(world, configs, replaced)),
    )


def _world(
    found: config_files.Found, nodes: tuple[migrate_nodes.Node, ...] | None, options: Options
) -> _World:
    default = options.default or found.default
    if default and default not in found.configs:
        there = ", ".join(found.configs) or "none"
        raise errors.BadInput("default", f"{default} is no configuration here", there)
    labelled = any(migrate_nodes.OPERATOR_LABEL in one.labels for one in nodes or ())
    operator = (found.operator or labelled) if options.operator is None else options.operator
    selection = migrate_nodes.Selection(tuple(found.configs), default, operator)
    having: dict[str, list[migrate_nodes.Node]] = {}
    for node in nodes or ():
        name = selection.of(node)
        if node.has_gpus and name is not None:
            having.setdefault(name, []).append(node)
    kept = {name: tuple(members) for name, members in having.items()}
    return _World(found, nodes, selection, options, operator, kept)


def _names(world: _World) -> list[str]:
    """Those of the files; the plugin's own defaults too where a node has them."""
    usual = world.selection.usual
    bare = migrate_nodes.PLUGINS_DEFAULTS
    needed = bare in world.having or (usual == bare and world.nodes is None)
    return [*world.found.configs, *([bare] if needed else [])]


def _migrated(name: str, world: _World) -> Migrated:
    body = world.found.body(name)
    config = device_plugin_config.read(body, f"{name or 'settings'}: ")
    situation = settings.Situation(
        config, per_gpu=world.options.per_gpu, scheduler=world.options.scheduler
    )
    nodes = world.having.get(name, ()) if world.nodes is not None else None
    return Migrated(
        name=name,
        config=config,
        offer=migrate_offerings.of(config, per_gpu=world.options.per_gpu),
        findings=settings.findings(body, situation),
        usual=world.selection.usual == name,
        nodes=None if nodes is None else tuple(one.name for one in nodes),
    )


def _in_use(configs: Iterable[Migrated]) -> Iterator[Migrated]:
    for one in configs:
        if one.usual or one.nodes is None or one.nodes:
            yield one


def _resources(configs: Iterable[Migrated], world: _World) -> Mapping[str, frozenset[Target]]:
    """What each old resource stood for, over all configurations that count and on the nodes."""
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
    for one in in_use:
        if one.usual:
            yield from one.offer.rules
    for one in in_use:
        if not one.usual and one.nodes:
            for rule in one.offer.rules:
                yield rule.model_copy(update={"nodes": tuple(sorted(one.nodes))})


def _values(
    configs: tuple[Migrated, ...],
    replaced: tuple[classes.Replacement, ...],
    rules: tuple[offerings.Rule, ...],
    *,
    scheduler: bool,
) -> Mapping[str, object]:
    on = {"nodeSelector": {migrate_steps.TAKEN: "true"}}
    plugin: dict[str, object] = {**on, "offerings": [rule_document(one) for one in rules]}
    made: dict[str, object] = {"kubeletPlugin": plugin, "mps": on}
    root = _driver_root(configs)
    if root != "/":
        made["driverRoot"] = root
    if scheduler:
        made |= {"allocator": "scheduler", "controller": {"enabled": False}}
        shared = {target.kind for one in replaced for target in one.targets} & faces.SHARED_KINDS
        if shared:
            # What the device plugin did too: kube-scheduler knows no namespaces in this (D18).
            plugin["shareDomain"] = "cluster"
    flags = [one.flag for one in replaced if one.flag]
    if flags:
        made["admission"] = {"extraArgs": flags}
    tables = classes.values(replaced)
    return made | ({"deviceClasses": tables} if tables else {})


def rule_document(rule: offerings.Rule) -> Mapping[str, object]:
    """A rule as YAML has it, without what it does not say."""
    made = rule.model_dump(mode="json", exclude_defaults=True)
    if rule.faces is not None:
        made["faces"] = sorted(one.value for one in rule.faces)
    return made


def _driver_root(configs: Iterable[Migrated]) -> str:
    return (*_roots(configs), "/")[0]


def _roots(configs: Iterable[Migrated]) -> tuple[str, ...]:
    """What the configurations that count say, the usual one's first."""
    ordered = sorted(_in_use(configs), key=lambda one: not one.usual)
    said = (one.config.flags and one.config.flags.nvidia_driver_root for one in ordered)
    return tuple(dict.fromkeys(settings.driver_root(one) for one in said if one))


def _turns(world: _World) -> Iterator[Turn]:
    """Small nodes first: the first one to try it on costs least."""
    pairs = [(node, name) for name, members in world.having.items() for node in members]
    for node, name in sorted(pairs, key=lambda pair: (pair[0].gpus, pair[0].name)):
        yield Turn(node, name, migrate_steps.of(node.name, operator=world.operator))


def _open(
    world: _World, configs: tuple[Migrated, ...], replaced: tuple[classes.Replacement, ...]
) -> Iterator[str]:
    """What a person has to see to."""
    for name in world.found.elsewhere:
        yield f"ConfigMap {name} is named and was not given: kubectl get configmap {name} -o yaml"
    if world.nodes is None and any(not one.usual for one in configs):
        yield (
            "which nodes have which configuration is not known, and the values hold only that of "
            "nodes without the label: give --nodes"
        )
    if world.selection.usual is None:
        yield "nodes without the label have no configuration: say which by --default"
    for node in world.nodes or ():
        if node.has_gpus and world.selection.of(node) is None:
            label = node.labels.get(migrate_nodes.CONFIG_LABEL)
            yield f"node {node.name} is labelled for {label or 'none'}, which is not here: left out"
    roots = _roots(configs)
    if len(roots) > 1:
        yield f"the configurations disagree on nvidiaDriverRoot, the chart has one: {roots[0]}"
    if world.operator and not roots:
        yield "where the GPU operator brings the driver: driverRoot: /run/nvidia/driver"
    yield from (one.left for one in replaced if one.left)
