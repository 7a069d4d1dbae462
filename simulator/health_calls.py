"""NVML calls about memory errors and repairs."""

from dataclasses import dataclass

from simulator import client, codes, machine

VOLATILE, AGGREGATE = 0, 1
CORRECTED, UNCORRECTED = 0, 1


@dataclass(frozen=True, slots=True)
class RemappedRows:
    """Counts, and whether a remapping is pending or failed."""

    corrected: int
    uncorrected: int
    pending: bool
    failed: bool


@dataclass(frozen=True, slots=True)
class RowRemapperHistogram:
    """`nvmlRowRemapperHistogramValues_t`: banks by how many spare rows they have left."""

    max: int
    high: int
    partial: int
    low: int
    none: int


class HealthCalls(client.Client):
    """Rows are remapped from Ampere on; before it, pages are retired."""

    @client.call
    def device_get_ecc_mode(self, device: client.Handle) -> tuple[bool, bool]:
        """Current and pending."""
        ecc = self._gpu(device).product.ecc
        return ecc, ecc

    @client.call
    def device_get_total_ecc_errors(
        self, device: client.Handle, error_type: int, counter_type: int
    ) -> int:
        """By error type (0 corrected) and counter type (0 since the last load, 1 for ever)."""
        gpu = self._gpu(device)
        if error_type not in {CORRECTED, UNCORRECTED} or counter_type not in {VOLATILE, AGGREGATE}:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        if not gpu.product.ecc:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        board = self.machine.board(gpu)
        counted = board.ecc if counter_type == VOLATILE else board.ecc_aggregate
        return counted.corrected if error_type == CORRECTED else counted.uncorrected

    @client.call
    def device_get_memory_error_counter(
        self, device: client.Handle, error_type: int, counter_type: int, location: int
    ) -> int:
        """All errors here are in device memory, location 2."""
        count = self.device_get_total_ecc_errors(device, error_type, counter_type)
        return count if location == codes.MEMORY_LOCATION_DEVICE else 0

    @client.call
    def device_get_remapped_rows(self, device: client.Handle) -> RemappedRows:
        """NOT_SUPPORTED before Ampere."""
        rows = self.machine.board(self._remapping(device)).remap
        return RemappedRows(rows.corrected, rows.uncorrected, rows.pending, rows.failed)

    @client.call
    def device_get_row_remapper_histogram(self, device: client.Handle) -> RowRemapperHistogram:
        """A remapped row costs its bank one spare."""
        gpu = self._remapping(device)
        rows = self.machine.board(gpu).remap
        used = min(rows.corrected + rows.uncorrected, gpu.product.remap_banks)
        return RowRemapperHistogram(gpu.product.remap_banks - used, used, 0, 0, 0)

    @client.call
    def device_get_retired_pages_pending_status(self, device: client.Handle) -> bool:
        """NOT_SUPPORTED from Ampere on."""
        if self._gpu(device).remaps_rows:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return False

    @client.call
    @client.since(535)
    def device_get_sram_ecc_error_status(self, device: client.Handle) -> bool:
        """Whether on-chip memory had too many errors; the counters are not simulated.

        NOT_SUPPORTED before Ampere. The driver major is assumed; no source says it.
        """
        return self.machine.board(self._remapping(device)).sram_exceeded

    @client.call
    @client.since(575)
    def device_get_unrepairable_memory_flag(self, device: client.Handle) -> bool:
        """NOT_SUPPORTED before Hopper. The driver major is assumed; no source says it."""
        gpu = self._gpu(device)
        if gpu.product.architecture < codes.Architecture.HOPPER:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return self.machine.board(gpu).unrepairable

    @client.call
    def device_get_total_energy_consumption(self, device: client.Handle) -> int:
        """In mJ since the driver took the GPU. There is no clock: a reading is a second."""
        board = self._board(device)
        board.energy_mj += board.power_mw
        return board.energy_mj

    def _remapping(self, device: client.Handle) -> machine.Gpu:
        gpu = self._gpu(device)
        if not gpu.remaps_rows:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return gpu
