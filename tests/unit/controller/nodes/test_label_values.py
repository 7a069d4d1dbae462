"""Tests of what a node's slices say of its GPUs, as GPU feature discovery's labels."""

from driver.controller.nodes import label_values
from driver.resources.dra import slices
from driver.resources.publish import slice_builder
from tests.fakes import simulated_pool
from tests.support.builders import objects


def published(machine: str) -> list[slices.Slice]:
    pool = simulated_pool.of_machine("node-a", "controller", machine)
    owner = slice_builder.Owner(simulated_pool.node_name("node-a"), "uid")
    return [slices.parse(entry) for entry in slice_builder.render(pool, owner, 1)]


def test_an_hgx_h100_is_labelled_as_guides_select_it() -> None:
    assert label_values.gpu_labels(published("hgx-h100")) == {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.compute.major": "9",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/cuda.driver.major": "580",
        "nvidia.com/cuda.driver.minor": "105",
        "nvidia.com/cuda.driver-version.major": "580",
        "nvidia.com/cuda.driver-version.minor": "105",
        "nvidia.com/cuda.runtime.major": "13",
        "nvidia.com/cuda.runtime.minor": "0",
        "nvidia.com/cuda.runtime-version.major": "13",
        "nvidia.com/cuda.runtime-version.minor": "0",
        "nvidia.com/mig.capable": "true",
    }


def test_a_node_without_gpus_has_none() -> None:
    assert label_values.gpu_labels([]) == {}


def test_a_product_is_made_a_labels_value() -> None:
    strange = "NVIDIA (R) Tesla/T4 " + "x" * 80
    document = {"type": {"string": "gpu"}, "productName": {"string": strange}}
    device = objects.a_device("gpu-0", attributes=document)
    gpu_labels = label_values.gpu_labels([slices.parse(objects.a_slice("node-a", [device]))])
    product = gpu_labels["nvidia.com/gpu.product"]
    assert product.startswith("NVIDIA-R-Tesla-T4-x")
    assert len(product) <= 63
    assert gpu_labels["nvidia.com/mig.capable"] == "false"
