"""Flags and environment variables by their former names. They are refused, with the present name.

The chart's values and the options of `ration` have tables of their own, in hack/chart/renamed.py
and driver/cli/renamed.py.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

FLAGS: Final[Mapping[str, str]] = {
    "usual": "workload_mix",
    "writers": "write_workers",
    "refused_seconds": "unschedulable_timeout_seconds",
    "seen_shapes": "observed_shapes_configmap",
    "beside": "allow_device_plugin",
    "evict_from_broken": "evict_on_gpu_fault",
    "usage_seconds": "usage_interval_seconds",
    "nvml_patience_seconds": "nvml_timeout_seconds",
    "template_seconds": "template_ttl_seconds",
    "configuration": "webhook_configuration",
    "look_seconds": "desired_state_poll_seconds",
}
"""Present names of settings by their former ones, spelled as the fields of the settings are."""


def find(
    fields: Collection[str], arguments: Sequence[str], environment_prefix: str
) -> Iterator[str]:
    """Yield a message for each former name of one of `fields` in arguments and environment."""
    flags = {argument.partition("=")[0] for argument in arguments}
    for former, present in FLAGS.items():
        if present not in fields:
            continue
        flag, present_flag = _flag(former), _flag(present)
        if flags & {flag, _flag(f"no_{former}")}:
            yield f"{flag} has been renamed: use {present_flag}{_note(present)}"
        variable = environment_prefix + former.upper()
        if variable in os.environ:
            yield (
                f"{variable} has been renamed: use "
                f"{environment_prefix}{present.upper()}{_note(present)}"
            )


def _note(present: str) -> str:
    return ", a boolean; its default is false" if present == "allow_device_plugin" else ""


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
