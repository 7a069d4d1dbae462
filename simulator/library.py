"""NVML as one object, for in-process use and behind the node's socket.

    nvml = library.Library(machine.build("hgx-h100", seed="node-1"))
    nvml.init()
    nvml.device_get_uuid(nvml.device_get_handle_by_index(0))

A method is the NVML function in snake case without its prefix and version suffix; it returns
plain values and raises `codes.NvmlError`. Functions not written here answer NOT_SUPPORTED in the C
library (exports.py).
"""

from simulator import (
    board_calls,
    event_calls,
    field_calls,
    mig_calls,
    mig_device_calls,
    monitor_calls,
    system_calls,
)


class Library(
    system_calls.SystemCalls,
    mig_calls.MigCalls,
    mig_device_calls.MigDeviceCalls,
    event_calls.EventCalls,
    field_calls.FieldCalls,
    monitor_calls.MonitorCalls,
    board_calls.BoardCalls,
):
    """All calls; see `client.Client` for what a client sees."""
