"""Opaque configuration, ours and NVIDIA's: what is taken can be written, and reads the same."""

from driver import names
from driver.api import decode, v1alpha1
from tests.fuzz.judging import refusing


def check(data: bytes) -> None:
    parameters = refusing.json_of(data)
    if not isinstance(parameters, dict):
        return
    for from_class in (False, True):
        with refusing.refusals():
            decoded = decode.decode_config(parameters, "at", from_class=from_class)
            assert from_class or not getattr(decoded, "crossNamespace", False)
            again = decode.decode_config(written(decoded), "at", from_class=True)
            assert again == decoded, (again, decoded)


def written(result: v1alpha1.Document) -> dict[str, object]:
    """Return it as a person would write it in our words."""
    shown: dict[str, object] = result.model_dump(mode="json", exclude_none=True)
    assert shown["apiVersion"] == names.CONFIG_VERSION
    return shown
