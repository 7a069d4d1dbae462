"""The files made of our kinds: manifests, the chart's templates, reference pages. Pure."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from hack.crds import kinds, schema

_NOTE = "# Generated from driver/api by `make docs`; do not edit.\n"
_HEAD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n"
_TEMPLATE = """{{{{- if .Values.crds.install }}}}
{note}{head}  name: {name}
  labels:
    {{{{- include "ration.labels" . | nindent 4 }}}}
  {{{{- if .Values.crds.keep }}}}
  annotations:
    helm.sh/resource-policy: keep
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
  {{{{- end }}}}
{spec}{{{{- end }}}}
"""
_MEANT = {
    "x-kubernetes-int-or-string": "integer or text",
    "x-kubernetes-preserve-unknown-fields": "object",
}


def manifest(kind: kinds.Kind) -> str:
    """The CustomResourceDefinition, for `kubectl apply --server-side`."""
    return f"{_NOTE}{_HEAD}  name: {kind.crd}\n{_spec(kind)}"


def template(kind: kinds.Kind) -> str:
    """The same in the chart. Raises ValueError where Helm would read a text as its own."""
    spec = _spec(kind)
    if "{{" in spec:
        raise ValueError(f"{kind.crd}: two braces in a row are a template's")
    return _TEMPLATE.format(note=_NOTE, head=_HEAD, name=kind.crd, spec=spec)


def _spec(kind: kinds.Kind) -> str:
    found = {"spec": kinds.spec(kind)}
    return yaml.dump(found, Dumper=_Plain, sort_keys=False, width=100, allow_unicode=True)


class _Plain(yaml.SafeDumper):
    """What occurs twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - yaml's signature
        return True


def page(kind: kinds.Kind) -> str:
    """The reference page."""
    found = kinds.whole(kind)
    scope = "In a namespace" if kind.resource.namespaced else "Of the cluster, in no namespace"
    head = (
        f"# {kind.name}\n\n{found['description']}\n\n"
        f"`{kind.resource.api_version}`. {scope}. `kubectl get {kind.resource.plural}`, "
        f"or `{kind.short}`; `kubectl explain {kind.name.lower()}.spec` says what stands here.\n"
    )
    tables = (
        f"\n## {part}\n\n{table(part, found['properties'][part])}" for part in ("spec", "status")
    )
    return head + "".join(tables) + _rules(found)


def table(part: str, found: schema.Schema) -> str:
    """Every field below a part (`spec`; "": the top), with its type, default and meaning."""
    head = "| Field | Type | Default | Meaning |\n|---|---|---|---|\n"
    return head + "".join(_rows(part, found))


def _rows(prefix: str, found: schema.Schema) -> Iterator[str]:
    required = found.get("required", ())
    for key, one in found.get("properties", {}).items():
        name = f"{prefix}.{key}".lstrip(".")
        given = f"`{_text(one['default'])}`" if "default" in one else ""
        default = "required" if key in required else given
        meaning = " ".join(one.get("description", "").split())
        yield f"| `{name}` | {_type(one)} | {default} | {meaning} |\n"
        yield from _rows(*_below(one, name))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _below(one: schema.Schema, name: str) -> tuple[str, schema.Schema]:
    """Where the fields below a place are, and their schema."""
    return (f"{name}[]", one["items"]) if one.get("type") == "array" else (name, one)


def _type(one: Mapping[str, Any]) -> str:
    for word, meant in _MEANT.items():
        if word in one:
            return meant
    if "enum" in one:
        return ", ".join(f"`{value}`" for value in one["enum"])
    if one["type"] == "array":
        return f"list of {_type(one['items'])}"
    if "additionalProperties" in one:
        return "map of texts"
    named = str(one["type"])
    return "text" if named == "string" else named


def _rules(found: schema.Schema) -> str:
    lines = "".join(f"- `{at}`: {message}\n" for at, message in _refused("", found))
    about = "Beside types, bounds and patterns the API server refuses what breaks one of these:"
    return f"\n## Refused\n\n{about}\n\n{lines}"


def _refused(at: str, found: schema.Schema) -> Iterator[tuple[str, str]]:
    for rule in found.get("x-kubernetes-validations", ()):
        yield f"{at}{rule.get('fieldPath', '')}".lstrip("."), rule["message"]
    for key, one in found.get("properties", {}).items():
        yield from _refused(*_below(one, f"{at}.{key}"))


MANIFESTS: Mapping[str, Callable[[], str]] = {
    f"{kind.resource.plural}.yaml": functools.partial(manifest, kind) for kind in kinds.KINDS
}
"""Files of deploy/crds."""
TEMPLATES: Mapping[str, Callable[[], str]] = {
    f"templates/crds/{kind.resource.plural}.yaml": functools.partial(template, kind)
    for kind in kinds.KINDS
}
"""Files of the chart's folder."""
PAGES: Mapping[str, Callable[[], str]] = {
    f"{kind.name.lower()}.md": functools.partial(page, kind) for kind in kinds.KINDS
}
"""Reference pages."""
