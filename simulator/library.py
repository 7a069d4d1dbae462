"""NVML as one object, for in-process use and behind the node's socket.

    nvml = library.Library(machine.build("hgx-h100", seed="node-1"))
    nvml.init()
    nvml.device_get_uuid(nvml.device_get_handle_by_index(0))

A method is the NVML function in snake case without its prefix and version suffix; it returns
plain values and raises `codes.NvmlError`. Functions not written here do not exist in the C
library either.
"""

from simulator import (
    board_calls,
    device_calls,
    event_calls,
    health_calls,
    link_calls,
    mig_calls,
    mig_device_calls,
    system_calls,
)


class Library(
    system_calls.SystemCalls,
    device_calls.DeviceCalls,
    link_calls.LinkCalls,
    mig_calls.MigCalls,
    mig_device_calls.MigDeviceCalls,
    event_calls.EventCalls,
    health_calls.HealthCalls,
    board_calls.BoardCalls,
):
    """All calls; see `client.Client` for what a client sees."""
