from typing import Any

import pytest

from driver import errors
from driver.api import decode, v1alpha1

VERSION = "resource.ration.dev/v1alpha1"


def test_an_empty_configuration_is_the_whole_gpu_as_it_is() -> None:
    document = {"apiVersion": VERSION, "kind": "GpuConfig"}
    assert decode.config(document, "config[0]") == v1alpha1.GpuConfig()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "config[0].apiVersion: is None; expected 'resource.ration.dev/v1alpha1'"),
        ({"apiVersion": "v1", "kind": "GpuConfig"}, "config[0].apiVersion: is 'v1'"),
        ({"apiVersion": VERSION, "kind": "Gpu"}, "config[0].kind: is 'Gpu'; expected one of"),
        ({"apiVersion": VERSION, "kind": ["GpuConfig"]}, "config[0].kind"),
        (
            {"apiVersion": VERSION, "kind": "GpuConfig", "sharing": {}},
            "config[0].sharing: is not a field; expected one of apiVersion, kind",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(document: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.BadInput) as told:
        decode.config(document, "config[0]")
    assert words in str(told.value)


def test_without_a_document_the_default_holds() -> None:
    assert decode.winner([], "main") == v1alpha1.GpuConfig()


@pytest.mark.parametrize(
    ("requests", "wins"),
    [((), True), (("main",), True), (("main/sub",), True), (("other",), False)],
)
def test_the_last_document_that_names_the_request_wins(
    requests: tuple[str, ...], *, wins: bool
) -> None:
    first, last = v1alpha1.GpuConfig(), v1alpha1.GpuConfig()
    found = decode.winner([((), first), (requests, last)], "main/sub")
    assert (found is last) is wins
