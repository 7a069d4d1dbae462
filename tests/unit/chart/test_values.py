import json

import pytest
import yaml

from driver.controller.config import ControllerConfig
from driver.kubeletplugin.config import PluginConfig
from driver.mps.config import SupervisorConfig
from driver.runtime import settings
from hack.chart import values, written

THE_CHARTS = {
    "metrics_address",  # metricsPort
    "web_address",  # web.enabled, web.port, web.exposed
    "web_auth",
    "web_tls_cert_file",  # web.tlsSecretName
    "web_tls_key_file",
    "kubeconfig",  # the pod's own credentials
    "driver_name",
    "identity",
    "namespace",
    "node_name",
    "instance",
    "kubelet_root",
    "cdi_root",
    "state_dir",
    "mps_dir",
    "shm_dir",
    "driver_root",
    "host_root",
    "allocator",
    "offerings",
    "workload_mix",
    "node_shapes",  # nodes.shapes, ttl, maxInFlight
    "observed_shapes_configmap",
    "placeholder_image",  # nodes.placeholderImage
    "interruption_taints",  # nodes.interruptionTaints
}
"""Flags that the chart says itself, or that are values of the whole release."""
DOCUMENTS = {"offerings", "workload_mix", "managed_drivers"}
"""Flags that name a document; the values hold its entries."""


@pytest.mark.parametrize(
    ("model", "section"),
    [(ControllerConfig, "controller"), (PluginConfig, "kubelet_plugin"), (SupervisorConfig, "mps")],
)
def test_every_flag_of_a_process_is_a_value_with_its_default_and_meaning(
    model: type[settings.ProcessSettings], section: str
) -> None:
    model_fields = type(getattr(values.Values(), section)).model_fields
    assert set(model.model_fields) - set(model_fields) <= THE_CHARTS
    for name in set(model.model_fields) & set(model_fields) - DOCUMENTS:
        flag, value = model.model_fields[name], model_fields[name]
        assert value.description == flag.description
        assert value.default == (list(flag.default) if flag.default == () else flag.default)


def test_the_written_values_are_the_models_defaults() -> None:
    assert yaml.safe_load(written.values_yaml()) == values.defaults()


def test_the_schema_takes_the_bounds_of_the_flags() -> None:
    defined = json.loads(written.schema())["$defs"]
    writers = defined["Controller"]["properties"]["writeWorkers"]
    assert (writers["type"], writers["minimum"], writers["maximum"]) == ("integer", 1, 64)
    assert defined["Mps"]["properties"]["pollSeconds"]["exclusiveMinimum"] == 0


def test_no_table_of_the_schema_takes_what_it_does_not_know() -> None:
    document = json.loads(written.schema())
    tables = [document, *document["$defs"].values()]
    assert all(table["additionalProperties"] is False for table in tables if "properties" in table)


def test_no_value_has_to_be_set() -> None:
    document = json.loads(written.schema())
    asking = {name for name, entry in document["$defs"].items() if "required" in entry}
    assert asking == {"ManagedDriver", "MigProfile", "NodeShape", "Taint"}
    assert "required" not in document


def test_a_value_called_default_or_title_would_stay_in_the_schema() -> None:
    schema = {"properties": {"title": {"title": "T", "default": 1}}, "title": "X", "type": "object"}
    assert written.without_titles(schema) == {"properties": {"title": {}}, "type": "object"}


def test_every_value_is_on_the_reference_page() -> None:
    page = written.page()
    for name in (
        "kubeletPlugin.usageIntervalSeconds",
        "deviceClasses.mig.profiles[].profile",
        "allocator",
    ):
        assert f"| `{name}` |" in page


def test_every_value_says_what_it_means() -> None:
    rows = [line for line in written.page().splitlines() if line.startswith("| `")]
    assert len(rows) > 100
    assert not [line for line in rows if line.rstrip().endswith("|  |")]
