from collections.abc import Iterator
from typing import Annotated, Any

import pydantic
import pytest

from driver.api import crd
from hack.crds import kinds, schema, written

ALL = [pytest.param(kind, id=kind.name) for kind in kinds.KINDS]


def places(found: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every place of a schema with its path."""
    yield at, found
    for key, one in found.get("properties", {}).items():
        yield from places(one, f"{at}.{key}")
    for below in ("items", "additionalProperties"):
        if below in found:
            yield from places(found[below], f"{at}[]")


@pytest.mark.parametrize("kind", ALL)
def test_every_place_has_one_type_and_no_word_that_is_not_structural(kind: kinds.Kind) -> None:
    for at, one in places(kinds.whole(kind)):
        assert ("type" in one) != ("x-kubernetes-int-or-string" in one), at
        assert not {"$ref", "$defs", "anyOf", "oneOf", "allOf", "title"} & set(one), at
        assert one.get("additionalProperties") is not False, at


@pytest.mark.parametrize("kind", ALL)
def test_every_field_of_ours_says_what_it_means(kind: kinds.Kind) -> None:
    common = {".apiVersion", ".kind", ".metadata"}
    silent = [
        at
        for at, one in places(kinds.whole(kind))
        if at not in common and not at.endswith("[]") and not one.get("description")
    ]
    assert silent == []


@pytest.mark.parametrize("kind", ALL)
def test_what_rules_read_is_bounded(kind: kinds.Kind) -> None:
    """The API server refuses a rule whose cost it cannot bound."""
    for at, one in places(kinds.whole(kind)["properties"]["spec"]):
        if one.get("type") == "array":
            assert "maxItems" in one, at
        if one.get("type") == "string" and "enum" not in one:
            assert "maxLength" in one, at
        if "additionalProperties" in one:
            assert "maxProperties" in one, at


@pytest.mark.parametrize("kind", ALL)
def test_what_a_rule_blames_is_a_field(kind: kinds.Kind) -> None:
    found = dict(places(kinds.whole(kind)))
    rules = [
        (at, rule) for at, one in found.items() for rule in one.get("x-kubernetes-validations", ())
    ]
    assert rules
    for at, rule in rules:
        assert f"{at}{rule.get('fieldPath', '')}" in found
        assert rule["message"]


@pytest.mark.parametrize("kind", ALL)
def test_a_column_shows_a_field_that_there_is(kind: kinds.Kind) -> None:
    found = {at for at, _ in places(kinds.whole(kind))}
    for one in kind.columns:
        path = one.path.partition("[?")[0]
        assert path in found or path == ".metadata.creationTimestamp"


def test_null_and_references_are_gone_and_the_nearer_description_holds() -> None:
    class Inner(crd.Strict):
        """Model inside another."""

        long_name: crd.Name | None = None

    class Outer(crd.Strict):
        """Model around another."""

        inner: Annotated[Inner | None, pydantic.Field(description="Nearer.")] = None
        many: tuple[Inner, ...] = ()

    found = schema.structural(Outer)["properties"]
    assert found["inner"]["description"] == "Nearer."
    assert found["inner"]["properties"]["longName"]["type"] == "string"
    assert found["many"]["items"]["description"] == "Of the inner."
    assert "default" not in found["many"]


def test_a_field_of_two_types_has_no_structural_schema() -> None:
    class Either(crd.Strict):
        value: int | str

    with pytest.raises(ValueError, match="no single type"):
        schema.structural(Either)


@pytest.mark.parametrize("kind", ALL)
def test_the_page_names_every_field_and_every_rule(kind: kinds.Kind) -> None:
    page = written.page(kind)
    for part in ("spec", "status"):
        for key in kinds.whole(kind)["properties"][part]["properties"]:
            assert f"| `{part}.{key}` |" in page
    for _, one in places(kinds.whole(kind)):
        for rule in one.get("x-kubernetes-validations", ()):
            assert f": {rule['message']}\n" in page
