from collections.abc import Iterator
from typing import Annotated, Any

import pydantic
import pytest

from driver.api import crd
from hack.crds import kinds, schema, written

ALL = [pytest.param(kind, id=kind.name) for kind in kinds.KINDS]


def places(result: Any, time: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every place of a schema with its path."""
    yield time, result
    for key, entry in result.get("properties", {}).items():
        yield from places(entry, f"{time}.{key}")
    for below in ("items", "additionalProperties"):
        if below in result:
            yield from places(result[below], f"{time}[]")


@pytest.mark.parametrize("kind", ALL)
def test_every_place_has_one_type_and_no_word_that_is_not_structural(kind: kinds.Kind) -> None:
    for time, entry in places(kinds.whole(kind)):
        assert ("type" in entry) != ("x-kubernetes-int-or-string" in entry), time
        assert not {"$ref", "$defs", "anyOf", "oneOf", "allOf", "title"} & set(entry), time
        assert entry.get("additionalProperties") is not False, time


@pytest.mark.parametrize("kind", ALL)
def test_every_field_of_ours_says_what_it_means(kind: kinds.Kind) -> None:
    common = {".apiVersion", ".kind", ".metadata"}
    silent = [
        time
        for time, entry in places(kinds.whole(kind))
        if time not in common and not time.endswith("[]") and not entry.get("description")
    ]
    assert silent == []


@pytest.mark.parametrize("kind", ALL)
def test_fields_read_by_rules_are_bounded(kind: kinds.Kind) -> None:
    """The API server refuses a rule whose cost it cannot bound."""
    for time, entry in places(kinds.whole(kind)["properties"]["spec"]):
        if entry.get("type") == "array":
            assert "maxItems" in entry, time
        if entry.get("type") == "string" and "enum" not in entry:
            assert "maxLength" in entry, time
        if "additionalProperties" in entry:
            assert "maxProperties" in entry, time


@pytest.mark.parametrize("kind", ALL)
def test_rules_name_an_existing_field(kind: kinds.Kind) -> None:
    result = dict(places(kinds.whole(kind)))
    rules = [
        (key, rule)
        for key, entry in result.items()
        for rule in entry.get("x-kubernetes-validations", ())
    ]
    assert rules
    for time, rule in rules:
        assert f"{time}{rule.get('fieldPath', '')}" in result
        assert rule["message"]


@pytest.mark.parametrize("kind", ALL)
def test_a_column_shows_a_field_that_there_is(kind: kinds.Kind) -> None:
    names = {time for time, _ in places(kinds.whole(kind))}
    for column in kind.columns:
        path = column.path.partition("[?")[0]
        assert path in names or path == ".metadata.creationTimestamp"


def test_null_and_references_are_gone_and_the_nearer_description_holds() -> None:
    class Inner(crd.Strict):
        """Model inside another."""

        long_name: crd.Name | None = None

    class Outer(crd.Strict):
        """Model around another."""

        inner: Annotated[Inner | None, pydantic.Field(description="Nearer.")] = None
        many: tuple[Inner, ...] = ()

    properties = schema.structural(Outer)["properties"]
    assert properties["inner"]["description"] == "Nearer."
    assert properties["inner"]["properties"]["longName"]["type"] == "string"
    assert properties["many"]["items"]["description"] == "Model inside another."
    assert "default" not in properties["many"]


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
    for _, entry in places(kinds.whole(kind)):
        for rule in entry.get("x-kubernetes-validations", ()):
            assert f": {rule['message']}\n" in page
