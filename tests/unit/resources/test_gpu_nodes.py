import pytest

from driver.resources import gpu_nodes


@pytest.mark.parametrize("label", gpu_nodes.LABELS)
def test_each_label_says_that_a_node_has_gpus(label: str) -> None:
    key, _, value = label.partition("=")
    assert gpu_nodes.has_gpu_label({"zone": "a", key: value or "nvidia-tesla-t4"})


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"zone": "a"},
        {"nvidia.com/gpu.present": "false"},
        {"nvidia.com/gpu.present.not": "true"},
    ],
)
def test_other_labels_and_other_values_say_nothing(labels: dict[str, str]) -> None:
    assert not gpu_nodes.has_gpu_label(labels)
