from typing import Any

import pytest

from driver import errors, names
from driver.resources.dra import device_classes
from tests.support.builders import objects


def test_a_class_whose_configuration_is_nested_too_deeply_is_refused() -> None:
    """Allocations copy it: what cannot be weighed is not handed on."""
    parameters: object = 1
    for _ in range(200):
        parameters = [parameters]
    entry = {"opaque": {"driver": "other.dev", "parameters": {"a": parameters}}}
    with pytest.raises(errors.BadInput, match="nested"):
        device_classes.parse(objects.a_class(config=[objects.a_config(), entry]))


def a_class(
    name: str, resource: str = "", created: str = "", label: str | None = None
) -> device_classes.DeviceClass:
    spec = {"extendedResourceName": resource} if resource else {}
    raw: dict[str, Any] = objects.a_class(name, **spec)
    raw["metadata"]["creationTimestamp"] = created
    if label is not None:
        raw["metadata"]["labels"] = {names.CONVERT_LABEL: label}
    return device_classes.parse(raw)


IMPLICIT = "deviceclass.resource.kubernetes.io/"
OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


def test_of_classes_with_one_resource_the_newest_has_it_then_the_first_by_name() -> None:
    old = a_class("a", "example.com/gpu", OLD)
    new = [a_class(name, "example.com/gpu", NEW) for name in "cb"]
    by_resource = device_classes.classes_by_resource([*new, old])
    assert by_resource["example.com/gpu"].name == "b"
    assert by_resource[f"{IMPLICIT}a"].name == "a"


def test_a_labelled_class_is_converted_by_both_of_its_resources() -> None:
    classes = [a_class("gpu", "example.com/gpu", label="true"), a_class("plain", "example.com/nic")]
    assert device_classes.converted_resources(classes) == {
        "example.com/gpu": "gpu",
        f"{IMPLICIT}gpu": "gpu",
    }


@pytest.mark.parametrize("label", ["false", "True", ""])
def test_a_label_other_than_true_converts_nothing(label: str) -> None:
    assert device_classes.converted_resources([a_class("gpu", label=label)]) == {}


def test_a_resource_that_a_newer_class_without_the_label_has_is_not_converted() -> None:
    classes = [
        a_class("labelled", "example.com/gpu", OLD, "true"),
        a_class("newer", "example.com/gpu", NEW),
    ]
    assert device_classes.converted_resources(classes) == {f"{IMPLICIT}labelled": "labelled"}
