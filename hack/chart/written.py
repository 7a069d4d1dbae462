"""What is generated from the values' model: values.yaml, its schema, the reference page. Pure."""

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pydantic
import yaml
from pydantic.fields import FieldInfo

from hack.chart import classes, parts, renamed, values

Row = tuple[str, str, str]
"""Value, default, meaning."""
_WIDTH = 100
_PYDANTICS = frozenset({"title", "default"})
"""Titles repeat names, defaults values.yaml."""
_NAMED = frozenset({"properties", "$defs"})


def schema() -> str:
    """values.schema.json, as Helm reads it."""
    found = without_titles(values.Values.model_json_schema(by_alias=True))
    found["properties"]["global"] = {"type": "object", "description": "Helm's own; not read."}
    renamed.allow(found)
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
    return json.dumps(document, indent=2) + "\n"


def without_titles(found: Any, words: frozenset[str] = _PYDANTICS) -> Any:  # noqa: ANN401 - JSON
    """Drop these words of a schema; below `properties` and `$defs` keys are names, not words."""
    if isinstance(found, list):
        return [without_titles(one) for one in found]
    if not isinstance(found, dict):
        return found
    return {
        key: without_titles(value, frozenset() if key in _NAMED else _PYDANTICS)
        for key, value in found.items()
        if key not in words
    }


def values_yaml() -> str:
    """values.yaml: every value with its default, below what it means."""
    head = "# Generated from hack/chart/values.py by `make docs`; do not edit.\n"
    return head + "\n".join(_lines(values.Values, values.defaults(), 0)) + "\n"


def _lines(part: type[pydantic.BaseModel], given: Mapping[str, Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for key, field in _fields(part):
        value = given[key]
        if depth == 0:
            yield ""
        for line in textwrap.wrap(field.description or "", _WIDTH - len(indent) - 2):
            yield f"{indent}# {line}"
        table = _table(field)
        if table is not None:
            yield f"{indent}{key}:"
            yield from _lines(table, value, depth + 1)
        else:
            text = yaml.safe_dump({key: _short(value)}, sort_keys=False, width=_WIDTH)
            yield from (f"{indent}{line}" for line in text.rstrip().splitlines())


def _fields(part: type[pydantic.BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Each field as it is spelled, switches first, tables last; otherwise as declared."""
    found = [(field.alias or name, field) for name, field in part.model_fields.items()]
    yield from sorted(found, key=lambda one: (one[0] != "enabled", _table(one[1]) is not None))


def _table(field: FieldInfo) -> type[parts.Part] | None:
    annotation: object = field.annotation
    if isinstance(annotation, type) and issubclass(annotation, parts.Part):
        return annotation
    return None


def _short(value: Any) -> Any:  # noqa: ANN401 - YAML
    """30 for 30.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def page() -> str:
    """The reference page."""
    head = (
        "# Values of the chart\n\n`deploy/helm/ration/values.yaml` holds them all; none has to be "
        "set. Where a meaning speaks of a flag, it is the [flag](flags.md) of that name.\n\n"
        "| Value | Default | Meaning |\n|---|---|---|\n"
    )
    rows = _rows(values.Values, values.defaults(), "")
    body = "".join(f"| `{name}` | {default} | {meaning} |\n" for name, default, meaning in rows)
    profile = "".join(
        f"| `deviceClasses.mig.profiles[].{key}` |  | {field.description} |\n"
        for key, field in _fields(classes.MigProfile)
    )
    return head + body + profile


def _rows(part: type[pydantic.BaseModel], given: Mapping[str, Any], prefix: str) -> Iterator[Row]:
    for key, field in _fields(part):
        name, table = f"{prefix}{key}", _table(field)
        if table is not None:
            yield from _rows(table, given[key], f"{name}.")
        else:
            shown = json.dumps(_short(given[key]))
            default = "" if shown in {'""', "[]", "{}"} else f"`{shown}`"
            yield name, default, field.description or ""


FILES: Mapping[str, Callable[[], str]] = {
    "values.yaml": values_yaml,
    "values.schema.json": schema,
    "templates/_renamed.tpl": renamed.template,
}
"""What is generated in the chart's folder."""
