import pytest

from driver import errors
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
