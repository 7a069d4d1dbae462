"""Pods that ask for device plugins' resources, as the admission webhook makes them. Pure."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from driver.resources import extended_resources, fields


def convert_pod(
    pod: fields.Raw, namespace: str, classes: extended_resources.Classes
) -> tuple[fields.Raw, Sequence[fields.Raw]]:
    """A pod, or a pod's template, that asks by claims, and the templates of these.

    Raises:
        BadInput: what it asks has no equal, or is not what a pod can ask.
    """
    conversion = extended_resources.convert(pod, classes)
    if not conversion.patch:
        return pod, ()
    return _patched(pod, conversion.patch), [
        template.render(namespace) for template in conversion.templates
    ]


def _patched(obj: fields.Raw, patch: Iterable[extended_resources.Operation]) -> fields.Raw:
    """With the operations of RFC 6902 that the webhook uses: add and remove."""
    patched: Any = copy.deepcopy(dict(obj))
    for item in patch:
        *path, last = [_part(part) for part in str(item["path"]).split("/")[1:]]
        inner = patched
        for part in path:
            inner = inner[int(part)] if isinstance(inner, list) else inner[part]
        if item["op"] == "remove":
            del inner[last]
        elif isinstance(inner, list):
            inner.append(item["value"])
        else:
            inner[last] = item["value"]
    return dict(patched)


def _part(text: str) -> str:
    return text.replace("~1", "/").replace("~0", "~")
