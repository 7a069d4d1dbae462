"""The page on rights: its tables from what the chart renders, its reasons from `why`. Pure."""

import string
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hack.chart import helm, rights, why

TEXT = Path(__file__).with_name("rights.md")
_COMPONENTS = {
    "kubeletplugin": "The kubelet plugin",
    "controller": "The controller",
    "admission": "The webhook",
    "leave": "Uninstalling",
}


def rendered(found: Iterable[rights.Object]) -> frozenset[why.Rule]:
    """The rules of rendered objects, as reasons are given for them."""
    return frozenset(_each(found))


def _each(found: Iterable[rights.Object]) -> Iterator[why.Rule]:
    for component, _, rule in rights.rules(found):
        verbs, named = ", ".join(rule["verbs"]), "resourceNames" in rule
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                yield why.Rule(component, group, resource, verbs, named)


def page() -> str:
    """The page. Raises KeyError where a rule has no reason."""
    found = [x for kind in ("ClusterRole", "Role") for x in helm.usual(kind)]
    optional = [rule for rule, said in why.WHY.items() if said.only]
    there = [*_each(found), *optional]
    tables = "\n".join(_table(component, there) for component in _COMPONENTS)
    return string.Template(TEXT.read_text()).substitute(tables=tables)


def _table(component: str, there: list[why.Rule]) -> str:
    rows = [_row(rule) for rule in there if rule.component == component]
    head = "| Resource | Verbs | Reason |\n|---|---|---|\n"
    return f"### {_COMPONENTS[component]}\n\n{head}" + "".join(rows)


def _row(rule: why.Rule) -> str:
    said: Any = why.WHY[rule]
    of = f"`{rule.resource}`" + (f" ({rule.group})" if rule.group else "")
    of += ", by name" if rule.named else ""
    values = " or ".join(f"`{one}`" for one in said.only)
    only = f" Only with {values}." if values else ""
    return f"| {of} | {rule.verbs} | {said.reason}{only} |\n"
