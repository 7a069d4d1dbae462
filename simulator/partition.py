"""One GPU's MIG: the mode, and instances made and destroyed as the driver would."""

from collections.abc import Iterator
from dataclasses import dataclass

from simulator import codes, events, geometry, machine, profile, state


@dataclass(frozen=True, slots=True)
class GpuProfile:
    """A GPU-instance profile of one product: its shape and what an instance has."""

    shape: geometry.Shape
    has: profile.MigProfile
    slice_sm: int

    @property
    def wide(self) -> bool:
        """Whether it is one slice, and more multiprocessors than a slice has (geometry.WIDE)."""
        return self.shape.slices == 1 and self.has.sm > self.slice_sm

    def is_whole(self, compute_profile: int) -> bool:
        """Whether a compute instance of that profile is all of an instance of this one."""
        if self.wide:
            return compute_profile == geometry.WIDE
        return geometry.COMPUTE_SLICES[compute_profile] == self.shape.slices

    def multiprocessors(self, compute_profile: int) -> int:
        """How many a compute instance of that profile has."""
        if self.wide and not self.is_whole(compute_profile):
            return self.slice_sm
        return self.has.sm * geometry.COMPUTE_SLICES[compute_profile] // self.shape.slices

    def compute_placements(self, compute_profile: int) -> tuple[geometry.Placement, ...]:
        """Where compute instances of a profile may lie in an instance of this one."""
        slices = self.shape.slices
        return geometry.compute_placements(slices, compute_profile, wide=self.wide)


class Partition:
    """MIG on `gpu`; every refusal is an NvmlError."""

    def __init__(self, of: machine.Machine, gpu: machine.Gpu) -> None:
        if gpu.product.mig is None:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)
        self._machine = of
        self._gpu = gpu
        self._mig = gpu.product.mig
        self._board = of.board(gpu)

    @property
    def max_devices(self) -> int:
        """MIG devices at most."""
        return geometry.MAX_DEVICES[self._mig.memory_slices]

    def profiles(self) -> Iterator[GpuProfile]:
        """What the product offers under the machine's driver."""
        slice_sm = self._mig.profiles["1_SLICE"].sm
        for name, has in self._mig.profiles.items():
            shape = geometry.SHAPES[self._mig.memory_slices][name]
            if shape.since <= self._machine.driver_major:
                yield GpuProfile(shape, has, slice_sm)

    def profile(self, profile_id: int) -> GpuProfile:
        """By the profile's id; INVALID_ARGUMENT for one the product does not have."""
        for offered in self.profiles():
            if offered.shape.id == profile_id:
                return offered
        raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)

    def instance_count(self, of: GpuProfile) -> int:
        """How many instances of one profile an empty GPU holds."""
        return min(len(of.shape.starts), _times(of, self._engines()))

    def remaining_capacity(self, of: GpuProfile) -> int:
        """How many more instances of one profile fit now."""
        return min(len(self._free(of)), _times(of, self._engines_left()))

    def set_mode(self, *, enabled: bool, others: int = 0) -> codes.Return:
        """Ask for a mode; the activation status: IN_USE and RESET_REQUIRED leave it pending.

        `others` is how many clients are open beside the one that asks.
        """
        board = self._board
        board.mig_pending = enabled
        self._machine.touch()
        if enabled == board.mig:
            return codes.Return.SUCCESS
        busy = board.instances or board.processes or (board.shy and others)
        if self._refuses_in_use() or busy:
            return codes.Return.IN_USE
        if not self._gpu.resetless:
            return self._needs_reset()
        board.mig = enabled
        board.compute_mode = codes.ComputeMode.DEFAULT
        self._machine.mode_changed(self._gpu)
        self._changed()
        return codes.Return.SUCCESS

    def _needs_reset(self) -> codes.Return:
        """A machine behind a hypervisor cannot reset its GPUs (seen: nvidia-smi -mig in such)."""
        passed = self._machine.profile.virtualization is codes.Virtualization.PASSTHROUGH
        return codes.Return.NOT_SUPPORTED if passed else codes.Return.RESET_REQUIRED

    def require_mode(self) -> None:
        """NOT_SUPPORTED while MIG is off."""
        if not self._board.mig:
            raise codes.NvmlError(codes.Return.NOT_SUPPORTED)

    def create(self, of: GpuProfile, at: geometry.Placement | None) -> state.GpuInstance:
        """A GPU instance at that place, or the first free one; INSUFFICIENT_RESOURCES if taken."""
        if at is not None and at not in of.shape.placements():
            raise codes.NvmlError(codes.Return.INVALID_ARGUMENT)
        self._perhaps_refuse_resources()
        free = self._free(of) if _times(of, self._engines_left()) else []
        wanted = free if at is None else [at]
        if not wanted or wanted[0] not in free:
            raise codes.NvmlError(codes.Return.INSUFFICIENT_RESOURCES)
        made = state.GpuInstance(
            serial=self._machine.next_serial(),
            id=geometry.gpu_instance_id(
                self._mig.memory_slices, wanted[0], halves_swapped=self._gpu.slot.halves_swapped
            ),
            profile=of.shape.id,
            at=wanted[0],
        )
        self._board.instances.append(made)
        self._changed(made)
        return made

    def destroy(self, instance: state.GpuInstance) -> None:
        """IN_USE while it holds compute instances or processes."""
        busy = any(p.gpu_instance == instance.id for p in self._board.processes)
        if self._refuses_in_use() or instance.compute or busy:
            raise codes.NvmlError(codes.Return.IN_USE)
        self._board.instances.remove(instance)
        self._changed(instance)

    def compute_free(
        self, instance: state.GpuInstance, compute_profile: int
    ) -> list[geometry.Placement]:
        """Where a compute instance of that profile can lie now."""
        places = self.profile(instance.profile).compute_placements(compute_profile)
        return [p for p in places if not any(p.overlaps(made.at) for made in instance.compute)]

    def create_compute(
        self, instance: state.GpuInstance, compute_profile: int, at: geometry.Placement | None
    ) -> state.ComputeInstance:
        """A compute instance, and with it a MIG device of a UUID that never was before."""
        self._perhaps_refuse_resources()
        free = self.compute_free(instance, compute_profile)
        wanted = free if at is None else [at]
        if not wanted or wanted[0] not in free:
            raise codes.NvmlError(codes.Return.INSUFFICIENT_RESOURCES)
        serial = self._machine.next_serial()
        made = state.ComputeInstance(
            serial=serial,
            id=_lowest_free({other.id for other in instance.compute}),
            profile=compute_profile,
            at=wanted[0],
            index=_lowest_free({c.index for i in self._board.instances for c in i.compute}),
            uuid=self._machine.mig_uuid(serial),
        )
        instance.compute.append(made)
        self._changed(instance, made)
        return made

    def destroy_compute(self, instance: state.GpuInstance, compute: state.ComputeInstance) -> None:
        """IN_USE while a process runs on it."""
        here = (instance.id, compute.id)
        busy = any((p.gpu_instance, p.compute_instance) == here for p in self._board.processes)
        if self._refuses_in_use() or busy:
            raise codes.NvmlError(codes.Return.IN_USE)
        instance.compute.remove(compute)
        self._changed(instance, compute)

    def _refuses_in_use(self) -> bool:
        if self._board.refuse_in_use == 0:
            return False
        self._board.refuse_in_use -= 1
        self._machine.touch()
        return True

    def _perhaps_refuse_resources(self) -> None:
        if self._board.refuse_resources > 0:
            self._board.refuse_resources -= 1
            self._machine.touch()
            raise codes.NvmlError(codes.Return.INSUFFICIENT_RESOURCES)

    def _changed(
        self,
        instance: state.GpuInstance | None = None,
        compute: state.ComputeInstance | None = None,
    ) -> None:
        gpu_instance = instance.id if instance else codes.WHOLE_GPU
        compute_instance = compute.id if compute else codes.WHOLE_GPU
        kind, pci = events.EventType.MIG_CONFIG, self._gpu.slot.pci
        self._machine.emit(events.Event(pci, kind, 0, gpu_instance, compute_instance))

    def _free(self, of: GpuProfile) -> list[geometry.Placement]:
        taken = [made.at for made in self._board.instances]
        return [p for p in of.shape.placements() if not any(p.overlaps(t) for t in taken)]

    def _engines(self) -> list[int]:
        """Media engines of the GPU: what the greatest profile has of each kind."""
        return [max(kind) for kind in zip(*(_media(of) for of in self.profiles()), strict=True)]

    def _engines_left(self) -> list[int]:
        taken = [_media(self.profile(made.profile)) for made in self._board.instances]
        return [all_ - sum(t[kind] for t in taken) for kind, all_ in enumerate(self._engines())]


def _media(of: GpuProfile) -> tuple[int, ...]:
    return (of.has.decoders, of.has.encoders, of.has.jpeg, of.has.ofa)


def _times(of: GpuProfile, engines: list[int]) -> int:
    """How often the engines suffice for a profile; as often as it has places if it takes none."""
    needs = zip(_media(of), engines, strict=True)
    return min((left // need for need, left in needs if need), default=len(of.shape.starts))


def _lowest_free(taken: set[int]) -> int:
    return next(number for number in range(len(taken) + 1) if number not in taken)


def device_name(parent: GpuProfile, compute_profile: int) -> str:
    """3g.40gb where the compute instance is the whole GPU instance, else 1c.3g.40gb."""
    if parent.is_whole(compute_profile):
        return parent.has.name
    return f"{geometry.COMPUTE_SLICES[compute_profile]}c.{parent.has.name}"
