"""Old configurations of the device plugin, each with what is expected of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from driver.cli.migrate import config_files, plan
from driver.cli.migrate import nodes as migrate_nodes

DATA = Path(__file__).parents[1] / "data" / "migrate"


@dataclass(frozen=True)
class Case:
    name: str
    files: Mapping[str, str]
    expected: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    nodes: list[Any] | None = None

    def plan(self, **others: Any) -> plan.Plan:
        nodes = None if self.nodes is None else migrate_nodes.read(self.nodes, "nodes")
        options = plan.PlanOptions(**{**self.options, **others})
        return plan.build_plan(config_files.read_configs(self.files), nodes, options)


def all_of_them() -> list[Case]:
    cases = []
    for path in sorted(DATA.glob("*.yaml")):
        document = yaml.safe_load(path.read_text())
        fields = {
            key: document[key]
            for key in ("files", "expected", "options", "nodes")
            if key in document
        }
        cases.append(Case(path.stem, **fields))
    return cases


CASES = all_of_them()
