from typing import Any

import pytest

from driver import errors
from driver.api import workload_mix
from driver.devices import faces


def read(*entries: dict[str, Any], **more: Any) -> workload_mix.UsualWorkloads:
    return workload_mix.read({"workloads": list(entries), **more}, "usual.yaml")


def test_an_entry_that_says_nothing_is_one_whole_gpu_as_often_as_the_others() -> None:
    (workload,) = read({}).workloads
    assert (workload.face, workload.gpus, workload.percent, workload.weight) == (
        faces.Kind.WHOLE,
        1,
        None,
        1,
    )
    assert (workload.cpu, workload.products) == ("0", ())


def test_the_document_says_what_it_is() -> None:
    annotations = {"apiVersion": "resource.ration.dev/v1alpha1", "kind": "UsualWorkloads"}
    assert read({"gpus": 8}, **annotations) == read({"gpus": 8})


@pytest.mark.parametrize(("cpu", "text"), [(64, "64"), (0.5, "0.5"), ("500m", "500m")])
def test_cpus_are_a_quantity_or_a_plain_number(cpu: object, text: str) -> None:
    (workload,) = read({"cpu": cpu}).workloads
    assert workload.cpu == text


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"gpu": 8}, ".gpu: is not a field"),
        ({"gpus": -1}, ".gpus: Input should be greater than or equal to 0"),
        ({"gpus": 65}, ".gpus: Input should be less than or equal to 64"),
        ({"face": "monitor"}, ".face: Input should be"),
        ({"face": "mps", "percent": 101}, ".percent: Input should be less than or equal to 100"),
        ({"weight": 0}, ".weight: Input should be greater than 0"),
        ({"weight": float("nan")}, ".weight: Input should be"),
        ({"cpu": "64 cores"}, ".cpu: String should match pattern"),
        ({"cpu": True}, ".cpu: Input should be a valid string"),
        ({"products": [""]}, ".products.0: String should have at least 1 character"),
        ({"percent": 25}, ": percent is of another face than whole; expected gpus, or face too"),
        ({"face": "mps"}, ": face mps has no size; expected percent of a GPU"),
        (
            {"face": "mig", "percent": 12, "gpus": 2},
            ": gpus is of whole GPUs; expected percent of one, for mig",
        ),
        ({"gpus": 0, "products": ["T4"]}, ": products are named and no GPU is asked"),
    ],
)
def test_an_invalid_document_is_refused_with_its_field(entry: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        read({"gpus": 8}, entry)
    assert str(refused.value).startswith(f"usual.yaml.workloads.1{words}")


def test_a_document_that_names_nothing_or_too_much_is_refused() -> None:
    with pytest.raises(errors.BadInput, match=r"usual\.yaml\.workloads: Field required"):
        workload_mix.read({}, "usual.yaml")
    with pytest.raises(
        errors.BadInput, match=r"usual\.yaml\.workloads: Tuple should have at least"
    ):
        read()
    with pytest.raises(errors.BadInput, match=r"usual\.yaml\.workloads: Tuple should have at most"):
        read(*[{}] * 65)
    with pytest.raises(errors.BadInput, match=r"usual\.yaml\.kind: Input should be"):
        read({}, kind="NodeOfferings")
