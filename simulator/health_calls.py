"""NVML calls about memory errors and repairs."""

from dataclasses import dataclass

from simulator import client, codes, machine, state

VOLATILE, AGGREGATE = 0, 1
CORRECTED, UNCORRECTED = 0, 1
SINGLE_BIT, DOUBLE_BIT = 0, 1
PAGE = 1 << 16
"""Of retired memory, in bytes."""


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


@dataclass(frozen=True, slots=True)
class SramEccErrorStatus:
    """`nvmlEccSramErrorStatus_v1_t`; uncorrectable errors are all SEC-DED, and of the L2 here."""

    aggregate_unc_parity: int
    aggregate_unc_sec_ded: int
    aggregate_cor: int
    volatile_unc_parity: int
    volatile_unc_sec_ded: int
    volatile_cor: int
    aggregate_unc_bucket_l2: int
    aggregate_unc_bucket_sm: int
    aggregate_unc_bucket_pcie: int
    aggregate_unc_bucket_mcu: int
    aggregate_unc_bucket_other: int
    threshold_exceeded: bool


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
        return self._retired(device).pending

    @client.call
    def device_get_retired_pages(self, device: client.Handle, cause: int) -> list[int]:
        """Addresses, by cause (0 several single-bit errors, 1 a double-bit one)."""
        pages = self._retired(device)
        counts = {SINGLE_BIT: pages.single_bit, DOUBLE_BIT: pages.double_bit}
        if cause not in counts:
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        return [(2 * number + cause + 1) * PAGE for number in range(counts[cause])]

    @client.since("nvmlDeviceGetSramEccErrorStatus")
    @client.call
    def device_get_sram_ecc_error_status(self, device: client.Handle) -> SramEccErrorStatus:
        """Root only; NOT_SUPPORTED before Ampere."""
        sram = self.machine.board(self._remapping(device)).sram
        self._require_root()
        return SramEccErrorStatus(
            aggregate_unc_parity=0,
            aggregate_unc_sec_ded=sram.aggregate.uncorrected,
            aggregate_cor=sram.aggregate.corrected,
            volatile_unc_parity=0,
            volatile_unc_sec_ded=sram.volatile.uncorrected,
            volatile_cor=sram.volatile.corrected,
            aggregate_unc_bucket_l2=sram.aggregate.uncorrected,
            aggregate_unc_bucket_sm=0,
            aggregate_unc_bucket_pcie=0,
            aggregate_unc_bucket_mcu=0,
            aggregate_unc_bucket_other=0,
            threshold_exceeded=sram.exceeded,
        )

    @client.since("nvmlDeviceGetRepairStatus")
    @client.call
    def device_get_repair_status(self, device: client.Handle) -> tuple[bool, bool]:
        """Whether a channel's and a TPC's repair are pending; NOT_SUPPORTED before Ampere."""
        repair = self.machine.board(self._remapping(device)).repair
        return repair.channel, repair.tpc

    @client.since("nvmlDeviceGetUnrepairableMemoryFlag_v1")
    @client.call
    def device_get_unrepairable_memory_flag(self, device: client.Handle) -> bool:
        """NOT_SUPPORTED before Hopper."""
        gpu = self._gpu(device)
        if gpu.product.architecture < codes.Architecture.HOPPER:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return self.machine.board(gpu).repair.unrepairable

    def _retired(self, device: client.Handle) -> state.Retired:
        gpu = self._gpu(device)
        if gpu.remaps_rows or not gpu.product.ecc:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        return self.machine.board(gpu).retired

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
