"""A pydantic model as a structural schema (apiextensions.k8s.io/v1). Pure.

Structural: each place has one type, no references, no alternatives that add fields; unknown fields
are pruned, or refused where the client asks for it, so `additionalProperties: false` is not said.
"""

from collections.abc import Mapping
from typing import Any

import pydantic

Schema = dict[str, Any]
_DROPPED = frozenset({"title", "$defs", "anyOf", "$ref"})
_SCALARS = (str, int, float)


def structural(model: type[pydantic.BaseModel]) -> Schema:
    """The model's schema. Raises ValueError where it is not of one type."""
    document = model.model_json_schema(by_alias=True)
    return _one(document, document.get("$defs", {}))


def _one(found: Mapping[str, Any], known: Mapping[str, Schema]) -> Schema:
    base = _single(found, known)
    own = {key: value for key, value in found.items() if key not in _DROPPED}
    made = {**base, **own}
    if not isinstance(made.get("default"), _SCALARS) or made["default"] == "":
        made.pop("default", None)
    if made.get("additionalProperties") is False:
        del made["additionalProperties"]
    if "properties" in made:
        made["properties"] = {key: _one(one, known) for key, one in made["properties"].items()}
    for below in ("items", "additionalProperties"):
        if below in made:
            made[below] = _one(made[below], known)
    if "description" in made:
        made["description"] = _flowing(made["description"])
    return made


def _single(found: Mapping[str, Any], known: Mapping[str, Schema]) -> Schema:
    """What a reference, or "this or null", stands for."""
    if "$ref" in found:
        return _one(known[found["$ref"].rpartition("/")[2]], known)
    if "anyOf" not in found:
        return {}
    there = [one for one in found["anyOf"] if one.get("type") != "null"]
    if len(there) != 1:
        raise ValueError(f"no single type: {found}")
    return _one(there[0], known)


def _flowing(text: str) -> str:
    """Lines that were broken for the source are joined, paragraphs stay."""
    return "\n\n".join(" ".join(one.split()) for one in text.split("\n\n"))
