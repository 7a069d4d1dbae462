"""Pods that ask for device plugins' resources, as the admission webhook makes them. Pure."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from driver.resources import extended_resources, fields


def converted(
    pod: fields.Raw, namespace: str, classes: extended_resources.Classes
) -> tuple[fields.Raw, Sequence[fields.Raw]]:
    """A pod, or a pod's template, that asks by claims, and the templates of these.

    Raises:
        BadInput: what it asks has no equal, or is not what a pod can ask.
    """
    found = extended_resources.convert(pod, classes)
    if not found.patch:
        return pod, ()
    return _patched(pod, found.patch), [one.render(namespace) for one in found.templates]


def _patched(obj: fields.Raw, patch: Iterable[extended_resources.Operation]) -> fields.Raw:
    """With the operations of RFC 6902 that the webhook uses: add and remove."""
    made: Any = copy.deepcopy(dict(obj))
    for one in patch:
        *path, last = [_part(part) for part in str(one["path"]).split("/")[1:]]
        inner = made
        for part in path:
            inner = inner[int(part)] if isinstance(inner, list) else inner[part]
        if one["op"] == "remove":
            del inner[last]
        elif isinstance(inner, list):
            inner.append(one["value"])
        else:
            inner[last] = one["value"]
    return dict(made)


def _part(text: str) -> str:
    return text.replace("~1", "/").replace("~0", "~")
