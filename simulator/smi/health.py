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
        *_repairs(nvml, handle),
    )


def _repairs(nvml: selection.Nvml, handle: client.Handle) -> Iterator[Field]:
    channel, tpc = selection.answer(nvml.device_get_repair_status, handle) or (None, None)
    memory = selection.answer(nvml.device_get_unrepairable_memory_flag, handle)
    yield Field("channel_repair_pending", "Channel Repair Pending", words.yes(channel))
    yield Field("tpc_repair_pending", "TPC Repair Pending", words.yes(tpc))
    yield Field("unrepairable_memory", "Unrepairable Memory", words.yes(memory))


def _sram(nvml: selection.Nvml, handle: client.Handle, counter: int) -> Iterator[Field]:
    """Root alone is told."""
    try:
        status = selection.answer(nvml.device_get_sram_ecc_error_status, handle)
    except codes.NvmlError as e:
        if e.code != codes.Return.NO_PERMISSION:
            raise
        status = None
    correctable = uncorrectable = None
    if status and counter == health_calls.VOLATILE:
        correctable, uncorrectable = status.volatile_cor, status.volatile_unc_sec_ded
    elif status:
        correctable, uncorrectable = status.aggregate_cor, status.aggregate_unc_sec_ded
    yield Field("sram_correctable", "SRAM Correctable", words.number(correctable))
    yield Field(
        "sram_uncorrectable_secded", "SRAM Uncorrectable SEC-DED", words.number(uncorrectable)
    )
    if counter == health_calls.AGGREGATE:
        exceeded = status.threshold_exceeded if status else None
        yield Field("sram_threshold_exceeded", "SRAM Threshold Exceeded", words.yes(exceeded))


def _counts(nvml: selection.Nvml, handle: client.Handle, counter: int) -> Iterator[Field]:
    yield from _sram(nvml, handle, counter)
    kinds = (("correctable", health_calls.CORRECTED), ("uncorrectable", health_calls.UNCORRECTED))
    for name, kind in kinds:
        count = selection.answer(nvml.device_get_total_ecc_errors, handle, kind, counter)
        yield Field(f"dram_{name}", f"DRAM {name.title()}", words.number(count))


def _retired(nvml: selection.Nvml, handle: client.Handle) -> Group:
    pending = selection.answer(nvml.device_get_retired_pages_pending_status, handle)
    causes = (
        ("multiple_single_bit_retirement", "Single Bit ECC", health_calls.SINGLE_BIT),
        ("double_bit_retirement", "Double Bit ECC", health_calls.DOUBLE_BIT),
    )
    return group(
        *("retired_pages", "Retired Pages"),
        *(_pages(nvml, handle, *cause) for cause in causes),
        Field("pending_retirement", "Pending Page Retirement", words.yes(pending)),
    )


def _pages(nvml: selection.Nvml, handle: client.Handle, tag: str, title: str, cause: int) -> Group:
    pages = selection.answer(nvml.device_get_retired_pages, handle, cause)
    count = words.number(None if pages is None else len(pages))
    return group(tag, "", Field("retired_count", title, count))


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
