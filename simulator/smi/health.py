"""The part of the log about errors, repairs and readings. See log.py."""

from collections.abc import Iterator

from simulator import client, codes, health_calls
from simulator.smi import selection, words
from simulator.smi.tree import Field, Group, Node, group

_RECOVERY = {
    codes.RecoveryAction.NONE: "None",
    codes.RecoveryAction.GPU_RESET: "Reset",
    codes.RecoveryAction.NODE_REBOOT: "Reboot",
    codes.RecoveryAction.DRAIN_P2P: "Drain P2P",
    codes.RecoveryAction.DRAIN_AND_RESET: "Drain and Reset",
    codes.RecoveryAction.RECOVER_IMEX_DOMAIN: "Recover IMEX Domain",
    codes.RecoveryAction.BUS_RESET: "Bus Reset",
    codes.RecoveryAction.SYSTEM_REBOOT: "System Reboot",
}


def of(nvml: selection.Nvml, handle: client.Handle) -> Iterator[Node]:
    """In the log's order."""
    yield _utilization(nvml, handle)
    yield from _ecc(nvml, handle)
    yield _retired(nvml, handle)
    yield _remapped(nvml, handle)
    celsius = nvml.device_get_temperature(handle, 0)
    yield group(
        *("temperature", "Temperature"), Field("gpu_temp", "GPU Current Temp", f"{celsius} C")
    )
    yield _power(nvml, handle)
    yield from _clocks(nvml, handle)


def recovery(nvml: selection.Nvml, handle: client.Handle) -> str:
    """Field 230, in words."""
    (told,) = nvml.device_get_field_values(handle, [codes.Field.GPU_RECOVERY_ACTION], [0])
    return words.NOT_THERE if told.code else _RECOVERY[codes.RecoveryAction(told.value)]


def _utilization(nvml: selection.Nvml, handle: client.Handle) -> Group:
    rates = selection.answer(nvml.device_get_utilization_rates, handle)
    encoder = selection.answer(nvml.device_get_encoder_utilization, handle)
    decoder = selection.answer(nvml.device_get_decoder_utilization, handle)
    return group(
        *("utilization", "Utilization"),
        Field("gpu_util", "GPU", words.percent(rates.gpu if rates else None)),
        Field("memory_util", "Memory", words.percent(rates.memory if rates else None)),
        Field("encoder_util", "Encoder", words.percent(encoder[0] if encoder else None)),
        Field("decoder_util", "Decoder", words.percent(decoder[0] if decoder else None)),
    )


def _ecc(nvml: selection.Nvml, handle: client.Handle) -> Iterator[Group]:
    modes = selection.answer(nvml.device_get_ecc_mode, handle)
    current, pending = [words.enabled(on=mode) for mode in modes or ()] or [words.NOT_THERE] * 2
    yield group(
        *("ecc_mode", "ECC Mode"),
        Field("current_ecc", "Current", current),
        Field("pending_ecc", "Pending", pending),
    )
    yield group(
        *("ecc_errors", "ECC Errors"),
        group("volatile", "Volatile", *_counts(nvml, handle, health_calls.VOLATILE)),
        group("aggregate", "Aggregate", *_counts(nvml, handle, health_calls.AGGREGATE)),
    )


def _counts(nvml: selection.Nvml, handle: client.Handle, counter: int) -> Iterator[Field]:
    kinds = (("correctable", health_calls.CORRECTED), ("uncorrectable", health_calls.UNCORRECTED))
    for name, kind in kinds:
        count = selection.answer(nvml.device_get_total_ecc_errors, handle, kind, counter)
        yield Field(f"dram_{name}", f"DRAM {name.title()}", words.number(count))


def _retired(nvml: selection.Nvml, handle: client.Handle) -> Group:
    pending = selection.answer(nvml.device_get_retired_pages_pending_status, handle)
    return group(
        *("retired_pages", "Retired Pages"),
        Field("pending_retirement", "Pending Page Retirement", words.yes(pending)),
    )


def _remapped(nvml: selection.Nvml, handle: client.Handle) -> Node:
    rows = selection.answer(nvml.device_get_remapped_rows, handle)
    if rows is None:
        return Field("remapped_rows", "Remapped Rows", words.NOT_THERE)
    banks = nvml.device_get_row_remapper_histogram(handle)
    left = {
        "max": banks.max,
        "high": banks.high,
        "partial": banks.partial,
        "low": banks.low,
        "none": banks.none,
    }
    return group(
        *("remapped_rows", "Remapped Rows"),
        Field("remapped_row_corr", "Correctable Error", str(rows.corrected)),
        Field("remapped_row_unc", "Uncorrectable Error", str(rows.uncorrected)),
        Field("remapped_row_pending", "Pending", words.yes(rows.pending)),
        Field("remapped_row_failure", "Remapping Failure Occurred", words.yes(rows.failed)),
        group(
            *("row_remapper_histogram", "Bank Remap Availability Histogram"),
            *(
                Field(f"row_remapper_histogram_{name}", name.title(), f"{count} bank(s)")
                for name, count in left.items()
            ),
        ),
    )


def _power(nvml: selection.Nvml, handle: client.Handle) -> Group:
    least, most = nvml.device_get_power_management_limit_constraints(handle)
    limit = nvml.device_get_enforced_power_limit(handle)
    default = nvml.device_get_power_management_default_limit(handle)
    draw = words.watts(nvml.device_get_power_usage(handle))
    return group(
        *("gpu_power_readings", "GPU Power Readings"),
        Field("average_power_draw", "Average Power Draw", draw),
        Field("instant_power_draw", "Instantaneous Power Draw", draw),
        Field("current_power_limit", "Current Power Limit", words.watts(limit)),
        Field("default_power_limit", "Default Power Limit", words.watts(default)),
        Field("min_power_limit", "Min Power Limit", words.watts(least)),
        Field("max_power_limit", "Max Power Limit", words.watts(most)),
    )


def _clocks(nvml: selection.Nvml, handle: client.Handle) -> Iterator[Group]:
    kinds = (
        ("graphics_clock", "Graphics", codes.Clock.GRAPHICS),
        ("sm_clock", "SM", codes.Clock.SM),
        ("mem_clock", "Memory", codes.Clock.MEMORY),
    )
    reads = (
        ("clocks", "Clocks", nvml.device_get_clock_info),
        ("max_clocks", "Max Clocks", nvml.device_get_max_clock_info),
    )
    for tag, title, read in reads:
        fields = (Field(name, of, f"{read(handle, kind)} MHz") for name, of, kind in kinds)
        yield group(tag, title, *fields)
