"""A ValidatingAdmissionPolicy asked about a request, without an API server.

Types are not checked as the API server checks them; what an expression says of a request is what it
says there (admissionregistration.k8s.io/v1).
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from cel_expr_python import cel

from tests.contract.chart import rendered

_KNOWN = ("object", "oldObject", "request", "params")
_CONFIG = {"extensions": [{"name": "optional"}, {"name": "strings"}]}


@dataclass(frozen=True)
class Request:
    """Request with its user; `object` is None of a deletion."""

    user: str
    operation: str
    object: Mapping[str, Any] | None
    old: Mapping[str, Any] | None = None
    namespace: str = ""
    subresource: str = ""
    manager: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)

    def told(self) -> dict[str, Any]:
        options = {"fieldManager": self.manager} if self.manager else {}
        request = {
            "userInfo": {"username": self.user},
            "operation": self.operation,
            "namespace": self.namespace,
            "options": options,
        }
        if self.subresource:
            request["subResource"] = self.subresource
        return {
            "object": self.object,
            "oldObject": self.old,
            "request": request,
            "params": self.params,
        }


def refusals(policy: rendered.Object, request: Request) -> list[str]:
    """Return what a policy says against a request; [] where nothing, or where it is none of its."""
    spec, document = policy["spec"], request.told()
    if not all(_value(entry["expression"], document) for entry in spec.get("matchConditions", ())):
        return []
    fields: dict[str, str] = {}
    for item in spec.get("variables", ()):
        fields[item["name"]] = _inlined(item["expression"], fields)
    return [
        validation["message"]
        for validation in spec["validations"]
        if _value(_inlined(validation["expression"], fields), document) is not True
    ]


def _inlined(expression: str, fields: Mapping[str, str]) -> str:
    """With what its variables stand for in their place."""
    return re.sub(r"variables\.(\w+)", lambda match: f"({fields[match[1]]})", expression)


@functools.cache
def _environment() -> cel.Env:
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(yaml.safe_dump(_CONFIG)),
        variables=dict.fromkeys(_KNOWN, cel.Type.DYN),
    )


@functools.cache
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)


def _value(expression: str, document: Mapping[str, Any]) -> Any:
    result = _compiled(expression).eval(data=dict(document))
    return result.value() if result.type() != cel.Type.ERROR else result
