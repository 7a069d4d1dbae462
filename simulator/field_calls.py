"""NVML's field values: readings by number, each with a return code and a type of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from simulator import codes, device_calls, health_calls, link_calls
from simulator.client import Handle, call

_UNSIGNED_INT, _UNSIGNED_LONG_LONG = 1, 3
"""`nvmlValueType_t`."""
_ALL_LINKS = 0xFFFFFFFF
_F = codes.Field
_NVLINK_MBPS = {1: 19531, 2: 25781, 3: 25000, 4: 26562, 5: 53125}
"""NVLink generation to MB/s a link, as `nvidia-smi nvlink -s` shows it; 1 is assumed."""


@dataclass(frozen=True, slots=True)
class FieldValue:
    """An answer of `nvmlDeviceGetFieldValues`: return code, `nvmlValueType_t`, unsigned value."""

    code: int
    kind: int
    value: int


class FieldCalls(device_calls.DeviceCalls, health_calls.HealthCalls, link_calls.LinkCalls):
    """Fields are those of nvml.h that monitoring reads; the others are NOT_SUPPORTED."""

    @call
    def device_get_field_values(
        self, device: Handle, fields: Sequence[int], scopes: Sequence[int]
    ) -> list[FieldValue]:
        """One answer for each field, in order; `scopes` has the NVLink of fields that have one."""
        self._gpu(device)
        return [
            self._field(device, field, scope) for field, scope in zip(fields, scopes, strict=True)
        ]

    def _field(self, device: Handle, field: int, scope: int) -> FieldValue:
        kind = _UNSIGNED_LONG_LONG if field in _WIDE else _UNSIGNED_INT
        try:
            if field in _NVLINK_ZEROES:
                value = self._nvlink_counter(device, scope)
            elif field in _ZEROES:
                value = 0
            else:
                read = self._readers().get(field)
                value = self._of_link(device, field, scope) if read is None else int(read(device))
        except codes.NvmlError as e:
            return FieldValue(e.code, kind, 0)
        return FieldValue(codes.Return.SUCCESS, kind, value)

    def _nvlink_counter(self, device: Handle, link: int) -> int:
        """Nothing crosses the links here, and nothing on them fails."""
        self._nvlink(device, 0 if link == _ALL_LINKS else link)
        return 0

    def _of_link(self, device: Handle, field: int, link: int) -> int:
        match field:
            case codes.Field.NVLINK_GET_SPEED:
                return _NVLINK_MBPS[self._nvlink(device, link).generation]
            case codes.Field.NVLINK_GET_STATE:
                return int(self.device_get_nv_link_state(device, link))
            case codes.Field.NVLINK_GET_VERSION:
                return self.device_get_nv_link_version(device, link)
            case _:
                raise codes.NvmlError(codes.Return.NOT_SUPPORTED)

    def _resetless(self, device: Handle) -> bool:
        gpu = self._gpu(device)
        if gpu.product.mig is None:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return gpu.resetless

    def _recovery_action(self, device: Handle) -> int:
        if self.machine.driver_major < codes.RECOVERY_SINCE:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return self._board(device).recovery

    def _switched_links(self, device: Handle) -> int:
        links = self._nvlink(device, 0).links
        return links if self.machine.profile.nvswitches is not None else 0

    def _readers(self) -> Mapping[int, Callable[[Handle], int]]:
        limits = self.device_get_power_management_limit_constraints
        return {
            _F.ECC_CURRENT: lambda gpu: self.device_get_ecc_mode(gpu)[0],
            _F.ECC_PENDING: lambda gpu: self.device_get_ecc_mode(gpu)[1],
            _F.ECC_SBE_VOL_TOTAL: lambda gpu: self.device_get_total_ecc_errors(gpu, 0, 0),
            _F.ECC_DBE_VOL_TOTAL: lambda gpu: self.device_get_total_ecc_errors(gpu, 1, 0),
            _F.ECC_SBE_AGG_TOTAL: lambda gpu: self.device_get_total_ecc_errors(gpu, 0, 1),
            _F.ECC_DBE_AGG_TOTAL: lambda gpu: self.device_get_total_ecc_errors(gpu, 1, 1),
            _F.MEMORY_TEMPERATURE: lambda gpu: self._board(gpu).celsius,
            _F.TOTAL_ENERGY_CONSUMPTION: self.device_get_total_energy_consumption,
            _F.ENERGY: self.device_get_total_energy_consumption,
            _F.NVLINK_SPEED_COMMON: lambda gpu: _NVLINK_MBPS[self._nvlink(gpu, 0).generation],
            _F.NVLINK_LINK_COUNT: lambda gpu: self._nvlink(gpu, 0).links,
            _F.NVSWITCH_CONNECTED_LINK_COUNT: self._switched_links,
            _F.REMAPPED_CORRECTABLE: lambda gpu: self.device_get_remapped_rows(gpu).corrected,
            _F.REMAPPED_UNCORRECTABLE: lambda gpu: self.device_get_remapped_rows(gpu).uncorrected,
            _F.REMAPPED_PENDING: lambda gpu: self.device_get_remapped_rows(gpu).pending,
            _F.REMAPPED_FAILURE: lambda gpu: self.device_get_remapped_rows(gpu).failed,
            _F.IS_RESETLESS_MIG_SUPPORTED: self._resetless,
            _F.POWER_AVERAGE: self.device_get_power_usage,
            _F.POWER_INSTANT: self.device_get_power_usage,
            _F.POWER_MIN_LIMIT: lambda gpu: limits(gpu)[0],
            _F.POWER_MAX_LIMIT: lambda gpu: limits(gpu)[1],
            _F.POWER_DEFAULT_LIMIT: self.device_get_power_management_default_limit,
            _F.POWER_CURRENT_LIMIT: self.device_get_power_management_limit,
            _F.POWER_REQUESTED_LIMIT: self.device_get_power_management_limit,
            _F.GPU_RECOVERY_ACTION: self._recovery_action,
        }


_NVLINK_ZEROES = frozenset(
    [
        *range(32, 60),  # errors by link, 0 to 5, and in all: CRC, replay, recovery
        *range(96, 120),  # the same, links 6 to 11
        *range(138, 142),  # throughput, data and raw
        *range(148, 164),  # ECC by link, and the data link layer's errors
    ]
)
_ZEROES = frozenset([94, 95, *range(173, 184), 197, 198])
"""PCIe: replays, errors, bytes."""
_WIDE = frozenset(
    [
        *(_F.TOTAL_ENERGY_CONSUMPTION, _F.ENERGY, 197, 198),
        *(_F.ECC_SBE_VOL_TOTAL, _F.ECC_DBE_VOL_TOTAL, _F.ECC_SBE_AGG_TOTAL, _F.ECC_DBE_AGG_TOTAL),
        *_NVLINK_ZEROES,
    ]
)
"""Counters that a 32-bit number is too short for."""
