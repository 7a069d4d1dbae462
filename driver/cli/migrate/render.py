"""The plan as text for people, as a document for programs, and as files to install from."""

from collections.abc import Iterator, Mapping, Sequence

import yaml

from driver import names
from driver.cli.migrate import steps as migrate_steps
from driver.cli.migrate.plan import Migrated, Plan, rule_document
from driver.cli.migrate.settings import Finding

_DEFAULTS = "(none: the device plugin's defaults)"
_WIDTH = 100


def plan_document(plan: Plan) -> Mapping[str, object]:
    """Return the plan for programs."""
    return {
        "allocator": "scheduler" if plan.scheduler else "controller",
        "operator": plan.operator,
        "open": list(plan.open),
        "settings": [_finding(note) for note in plan.notes],
        "configs": [_config(note) for note in plan.configs],
        "resources": [
            {
                "resource": note.resource,
                "deviceClass": note.name,
                "faces": sorted({target.kind.value for target in note.targets}),
                "several": note.several,
                "by": "extendedResourceName" if note.extended else "webhook",
                "quota": {"old": note.old_key, "new": note.new_key, "note": note.counts},
            }
            for note in plan.replacements
        ],
        "values": plan.values,
        "deviceClasses": manifests(plan),
        "before": list(_before(plan)),
        "nodes": [
            {
                "name": note.node.name,
                "config": note.config,
                "forth": list(note.steps.takeover),
                "back": list(note.steps.rollback),
            }
            for note in plan.turns
        ],
        "after": list(migrate_steps.steps_after(scheduler=plan.scheduler)),
    }


def manifests(plan: Plan) -> list[Mapping[str, object]]:
    """DeviceClasses that the chart has no value for."""
    return [
        replacement.manifest
        for replacement in plan.replacements
        if replacement.manifest is not None
    ]


def offerings_document(plan: Plan) -> Mapping[str, object]:
    """Return the NodeOfferings in the values, as a document of its own."""
    rules = [rule_document(rule) for rule in plan.rules]
    return {"apiVersion": names.CONFIG_VERSION, "kind": "NodeOfferings", "rules": rules}


def plan_files(plan: Plan) -> Mapping[str, str]:
    """Files by name."""
    result = {
        "values.yaml": as_yaml(plan.values),
        "offerings.yaml": as_yaml(offerings_document(plan)),
        "plan.txt": plan_text(plan),
    }
    classes = manifests(plan)
    if classes:
        result["deviceclasses.yaml"] = "---\n".join(as_yaml(class_) for class_ in classes)
    if not plan.operator:
        result["device-plugin-values.yaml"] = as_yaml(migrate_steps.affinity())
    return result


def as_yaml(value: object) -> str:
    """In the order in which it was made."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=_WIDTH)


class _Dumper(yaml.SafeDumper):
    """Writes a thing that stands twice out twice."""

    def ignore_aliases(self, data: object) -> bool:
        """Always."""
        del data
        return True


def plan_text(plan: Plan) -> str:
    """Return the plan for people."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    allocator = "kube-scheduler" if plan.scheduler else "Ration's controller"
    plugin = "the GPU operator" if plan.operator else "its own chart"
    yield f"{allocator} allocates; the device plugin is run by {plugin}."
    if plan.open:
        yield from ("", "TO SEE TO", *(f"  - {migrated}" for migrated in plan.open))
    if plan.notes:
        yield from ("", "AROUND THE CONFIGURATIONS", *_settings(plan.notes))
    for migrated in plan.configs:
        yield from ("", *_of_config(migrated))
    yield from ("", "WHAT PODS ASK FOR", *_resources(plan))
    yield from ("", "VALUES OF RATION'S CHART", *_indented(as_yaml(plan.values)))
    for manifest in manifests(plan):
        yield from ("", "A DEVICECLASS BESIDE THE CHART'S", *_indented(as_yaml(manifest)))
    yield from ("", "BEFORE THE FIRST NODE", *(f"  {migrated}" for migrated in _before(plan)))
    yield from _nodes(plan)
    after = migrate_steps.steps_after(scheduler=plan.scheduler)
    if after:
        yield from ("", "NAMESPACE BY NAMESPACE", *(f"  {migrated}" for migrated in after))


def _before(plan: Plan) -> Sequence[str]:
    result = migrate_steps.steps_before(operator=plan.operator, scheduler=plan.scheduler)
    more = ("kubectl apply -f deviceclasses.yaml",) if manifests(plan) else ()
    return (*result, *more)


def _of_config(migrated: Migrated) -> Iterator[str]:
    nodes = "" if migrated.nodes is None else f", on {', '.join(migrated.nodes) or 'no node'}"
    usual = ", usual where a node has no label" if migrated.usual else ""
    yield f"CONFIGURATION {migrated.name or _DEFAULTS}{usual}{nodes}"
    for rule in migrated.offer.rules:
        message = rule_document(rule)
        shown = yaml.safe_dump(message, default_flow_style=True, width=1000, sort_keys=False)
        yield f"  offers   {shown.strip()}"
    yield from _settings(migrated.findings)


def _settings(findings: Sequence[Finding]) -> Iterator[str]:
    for fate in ("unknown", "changed", "dropped", "used"):
        for finding in findings:
            if finding.fate == fate:
                yield f"  {fate:8} {finding.setting}: {finding.text}"


def _resources(plan: Plan) -> Iterator[str]:
    for replacement in plan.replacements:
        how = "as extendedResourceName of" if replacement.extended else "converted to"
        subject = " or ".join(sorted({target.kind.value for target in replacement.targets}))
        yield f"  {replacement.resource}: {how} {replacement.name} ({subject})"
        if replacement.several:
            yield f"    {replacement.several}"
        yield f"    quota  {replacement.old_key}  ->  {replacement.new_key}"
        yield f"           {replacement.counts}"


def _nodes(plan: Plan) -> Iterator[str]:
    for number, node_steps in enumerate(plan.turns, 1):
        yield from (
            "",
            f"NODE {number} OF {len(plan.turns)}: {node_steps.node.name} ({node_steps.config})",
        )
        yield from (f"  {step}" for step in node_steps.steps.takeover)
        yield "  back:"
        yield from (f"    {step}" for step in node_steps.steps.rollback)
    if not plan.turns:
        steps = migrate_steps.node_steps("NODE", operator=plan.operator)
        yield from ("", "EACH NODE", *(f"  {step}" for step in steps.takeover), "  back:")
        yield from (f"    {step}" for step in steps.rollback)


def _indented(shown: str) -> Iterator[str]:
    return (f"  {line}" for line in shown.rstrip().splitlines())


def _config(migrated: Migrated) -> Mapping[str, object]:
    return {
        "name": migrated.name,
        "usual": migrated.usual,
        "nodes": None if migrated.nodes is None else list(migrated.nodes),
        "offers": [rule_document(rule) for rule in migrated.offer.rules],
        "settings": [_finding(finding) for finding in migrated.findings],
    }


def _finding(finding: Finding) -> Mapping[str, object]:
    return {
        "path": finding.path,
        "value": finding.value,
        "fate": finding.fate.value,
        "text": finding.text,
    }


def dra_text(plan: migrate_steps.DraPlan) -> str:
    """Return the plan of the move from a DRA driver for people."""
    return "\n".join(_dra_lines(plan)) + "\n"


def dra_document(plan: migrate_steps.DraPlan) -> Mapping[str, object]:
    """Return the plan for programs."""
    return {
        "driver": plan.driver,
        "values": plan.values,
        "matchExpressionOfTheDriver": migrate_steps.KEEP_AWAY,
        "nodes": [
            {"node": node, "takeover": list(moved.takeover), "rollback": list(moved.rollback)}
            for node, moved in _dra_moves(plan)
        ],
    }


def _dra_lines(plan: migrate_steps.DraPlan) -> Iterator[str]:
    yield f"Ration's controller allocates the devices of {plan.driver} and of {names.DRIVER}."
    yield from ("", "VALUES OF RATION'S CHART", *_indented(as_yaml(plan.values)))
    yield from ("", f"IN EACH nodeSelectorTerm OF THE DAEMONSET OF {plan.driver}")
    yield from _indented(as_yaml({"matchExpressions": [migrate_steps.KEEP_AWAY]}))
    install = "helm upgrade --install ration deploy/helm/ration -n ration-system -f values.yaml"
    yield from ("", "BEFORE THE FIRST NODE", f"  {install}")
    for node, moved in _dra_moves(plan):
        yield from ("", f"NODE {node}" if plan.nodes else "EACH NODE")
        yield from (f"  {command}" for command in moved.takeover)
        yield from ("  back:", *(f"    {command}" for command in moved.rollback))


def _dra_moves(plan: migrate_steps.DraPlan) -> Sequence[tuple[str, migrate_steps.Steps]]:
    return [(node, plan.node_steps(node)) for node in plan.nodes or ("NODE",)]
