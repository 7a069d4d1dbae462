"""The plan as text for people, as a document for programs, and as files to install from."""

from collections.abc import Iterator, Mapping, Sequence

import yaml

from driver import names
from driver.cli.migrate import steps as migrate_steps
from driver.cli.migrate.findings import Finding
from driver.cli.migrate.plan import Migrated, Plan, rule_document

_DEFAULTS = "(none: the device plugin's defaults)"
_WIDTH = 100


def document(plan: Plan) -> Mapping[str, object]:
    """For programs."""
    return {
        "allocator": "scheduler" if plan.scheduler else "controller",
        "operator": plan.operator,
        "open": list(plan.open),
        "settings": [_finding(one) for one in plan.notes],
        "configs": [_config(one) for one in plan.configs],
        "resources": [
            {
                "resource": one.resource,
                "deviceClass": one.name,
                "faces": sorted({target.kind.value for target in one.targets}),
                "several": one.several,
                "by": "extendedResourceName" if one.extended else "webhook",
                "quota": {"old": one.old_key, "new": one.new_key, "note": one.counts},
            }
            for one in plan.replacements
        ],
        "values": plan.values,
        "deviceClasses": manifests(plan),
        "before": list(_before(plan)),
        "nodes": [
            {
                "name": one.node.name,
                "config": one.config,
                "forth": list(one.steps.forth),
                "back": list(one.steps.back),
            }
            for one in plan.turns
        ],
        "after": list(migrate_steps.after(scheduler=plan.scheduler)),
    }


def manifests(plan: Plan) -> list[Mapping[str, object]]:
    """DeviceClasses that the chart has no value for."""
    return [one.manifest for one in plan.replacements if one.manifest is not None]


def offerings_document(plan: Plan) -> Mapping[str, object]:
    """What the values hold of NodeOfferings, as a document of its own."""
    rules = [rule_document(one) for one in plan.rules]
    return {"apiVersion": names.CONFIG_VERSION, "kind": "NodeOfferings", "rules": rules}


def files(plan: Plan) -> Mapping[str, str]:
    """Files by name."""
    found = {
        "values.yaml": as_yaml(plan.values),
        "offerings.yaml": as_yaml(offerings_document(plan)),
        "plan.txt": text(plan),
    }
    classes = manifests(plan)
    if classes:
        found["deviceclasses.yaml"] = "---\n".join(as_yaml(one) for one in classes)
    if not plan.operator:
        found["device-plugin-values.yaml"] = as_yaml(migrate_steps.affinity())
    return found


def as_yaml(value: object) -> str:
    """In the order in which it was made."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=_WIDTH)


class _Dumper(yaml.SafeDumper):
    """Writes a thing that stands twice out twice."""

    def ignore_aliases(self, data: object) -> bool:
        """Always."""
        del data
        return True


def text(plan: Plan) -> str:
    """For people."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    allocator = "kube-scheduler" if plan.scheduler else "Ration's controller"
    plugin = "the GPU operator" if plan.operator else "its own chart"
    yield f"{allocator} allocates; the device plugin is run by {plugin}."
    if plan.open:
        yield from ("", "TO SEE TO", *(f"  - {one}" for one in plan.open))
    if plan.notes:
        yield from ("", "AROUND THE CONFIGURATIONS", *_settings(plan.notes))
    for one in plan.configs:
        yield from ("", *_of_config(one))
    yield from ("", "WHAT PODS ASK FOR", *_resources(plan))
    yield from ("", "VALUES OF RATION'S CHART", *_indented(as_yaml(plan.values)))
    for manifest in manifests(plan):
        yield from ("", "A DEVICECLASS BESIDE THE CHART'S", *_indented(as_yaml(manifest)))
    yield from ("", "BEFORE THE FIRST NODE", *(f"  {one}" for one in _before(plan)))
    yield from _nodes(plan)
    after = migrate_steps.after(scheduler=plan.scheduler)
    if after:
        yield from ("", "NAMESPACE BY NAMESPACE", *(f"  {one}" for one in after))


def _before(plan: Plan) -> Sequence[str]:
    found = migrate_steps.before(operator=plan.operator, scheduler=plan.scheduler)
    more = ("kubectl apply -f deviceclasses.yaml",) if manifests(plan) else ()
    return (*found, *more)


def _of_config(one: Migrated) -> Iterator[str]:
    nodes = "" if one.nodes is None else f", on {', '.join(one.nodes) or 'no node'}"
    usual = ", usual where a node has no label" if one.usual else ""
    yield f"CONFIGURATION {one.name or _DEFAULTS}{usual}{nodes}"
    for rule in one.offer.rules:
        said = rule_document(rule)
        shown = yaml.safe_dump(said, default_flow_style=True, width=1000, sort_keys=False)
        yield f"  offers   {shown.strip()}"
    yield from _settings(one.findings)


def _settings(found: Sequence[Finding]) -> Iterator[str]:
    for fate in ("unknown", "changed", "dropped", "used"):
        for one in found:
            if one.fate == fate:
                yield f"  {fate:8} {one.setting}: {one.text}"


def _resources(plan: Plan) -> Iterator[str]:
    for one in plan.replacements:
        how = "as extendedResourceName of" if one.extended else "converted to"
        what = " or ".join(sorted({target.kind.value for target in one.targets}))
        yield f"  {one.resource}: {how} {one.name} ({what})"
        if one.several:
            yield f"    {one.several}"
        yield f"    quota  {one.old_key}  ->  {one.new_key}"
        yield f"           {one.counts}"


def _nodes(plan: Plan) -> Iterator[str]:
    for number, one in enumerate(plan.turns, 1):
        yield from ("", f"NODE {number} OF {len(plan.turns)}: {one.node.name} ({one.config})")
        yield from (f"  {step}" for step in one.steps.forth)
        yield "  back:"
        yield from (f"    {step}" for step in one.steps.back)
    if not plan.turns:
        steps = migrate_steps.of("NODE", operator=plan.operator)
        yield from ("", "EACH NODE", *(f"  {step}" for step in steps.forth), "  back:")
        yield from (f"    {step}" for step in steps.back)


def _indented(shown: str) -> Iterator[str]:
    return (f"  {line}" for line in shown.rstrip().splitlines())


def _config(one: Migrated) -> Mapping[str, object]:
    return {
        "name": one.name,
        "usual": one.usual,
        "nodes": None if one.nodes is None else list(one.nodes),
        "offers": [rule_document(rule) for rule in one.offer.rules],
        "settings": [_finding(found) for found in one.findings],
    }


def _finding(one: Finding) -> Mapping[str, object]:
    return {"path": one.path, "value": one.value, "fate": one.fate.value, "text": one.text}
