import pytest

from driver import errors, names
from driver.api import v1alpha1
from driver.resources.dra import claims
from driver.resources.sharing import allocation_config
from tests.support.builders import objects


def allocation(*configs: objects.Raw) -> claims.Allocation:
    status = objects.allocated("node-a", "gpu-0")
    status["allocation"]["devices"]["config"] = [*configs]
    result = objects.claim(status=status).allocation
    assert result is not None
    return result


def test_the_drivers_documents_are_read_in_their_order_with_their_requests() -> None:
    theirs = {"source": "FromClaim", "opaque": {"driver": "nic.example.com", "parameters": {}}}
    documents = [
        *allocation_config.allocation_configs(
            allocation(
                {"source": "FromClass", **objects.a_config(crossNamespace=True)},
                theirs,
                {"source": "FromClaim", **objects.a_config("MigDeviceConfig", "gpu")},
            ),
            names.DRIVER,
        )
    ]
    assert [type(document.config) for document in documents] == [
        v1alpha1.GpuConfig,
        v1alpha1.MigDeviceConfig,
    ]
    assert [document.requests for document in documents] == [(), ("gpu",)]
    assert documents[1].where == "status.allocation.devices.config[2].opaque.parameters"


def test_class_only_configuration_is_refused_in_a_claim() -> None:
    entry = {"source": "FromClaim", **objects.a_config(crossNamespace=True)}
    with pytest.raises(errors.BadInput, match="crossNamespace"):
        list(allocation_config.allocation_configs(allocation(entry), names.DRIVER))
