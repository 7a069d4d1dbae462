"""Model of one simulated GPU's remaining capacity: the judge of the faces.

Instances are made and destroyed on the simulated machine itself, by its own rules; the other modes
are what D1 says of them: a GPU is whole for one, or shared in one way, or cut.
"""

from dataclasses import dataclass, field

from driver.devices import faces
from simulator import codes, geometry, machine, partition, state

_STEP = 128 << 20
_FULL = 100


@dataclass(frozen=True, slots=True)
class Share:
    """Share of a GPU that a claim takes: bytes, percent, and one of its shares."""

    memory: int
    compute: int


@dataclass(slots=True)
class Gpu:
    """One GPU of a machine, and what is on it, by claim."""

    of: machine.Machine
    gpu: machine.Gpu
    whole: str | None = None
    sharing: faces.Sharing | None = None
    shares: dict[str, Share] = field(default_factory=dict)
    instances: dict[str, state.GpuInstance] = field(default_factory=dict)

    @property
    def _idle(self) -> bool:
        return self.whole is None and not self.shares and not self.instances

    def fits_whole(self) -> bool:
        return self._idle and not self._stuck_in_mig()

    def fits_share(self, sharing: faces.Sharing, share: Share, offered: int) -> bool:
        """Return whether the GPU has that much left in that mode."""
        if self.whole is not None or self.instances or self._stuck_in_mig():
            return False
        if self.shares and self.sharing is not sharing:
            return False
        memory = sum(share.memory for share in self.shares.values()) + share.memory
        compute = sum(share.compute for share in self.shares.values()) + share.compute
        total = self.gpu.product.memory_mib.total << 20
        return memory <= total and compute <= _FULL and len(self.shares) < offered

    def fits_profile(self, profile_id: int) -> bool:
        """Return whether the machine would make one more instance of it, anywhere."""
        if self.gpu.product.mig is None or self.whole is not None or self.shares:
            return False
        if not self.of.board(self.gpu).mig and not self.gpu.resetless:
            return False
        mig = partition.Partition(self.of, self.gpu)
        return mig.remaining_capacity(mig.profile(profile_id)) > 0

    def make(self, claim: str, profile_id: int, start: int) -> bool:
        """Make an instance exactly there; False where the machine refuses it."""
        mig = partition.Partition(self.of, self.gpu)
        if not self.of.board(self.gpu).mig:
            assert mig.set_mode(enabled=True) is codes.Return.SUCCESS
        profile = mig.profile(profile_id)
        placement = next(
            placement for placement in profile.shape.placements() if placement.start == start
        )
        try:
            self.instances[claim] = mig.create(
                profile, geometry.Placement(placement.start, placement.size)
            )
        except codes.NvmlError:
            return False
        return True

    def release(self, claim: str) -> None:
        """Take off whatever the claim has here."""
        if self.whole == claim:
            self.whole = None
        self.shares.pop(claim, None)
        instance = self.instances.pop(claim, None)
        if instance is not None:
            mig = partition.Partition(self.of, self.gpu)
            mig.destroy(instance)
            if not self.instances and self.gpu.resetless:
                mig.set_mode(enabled=False)

    def _stuck_in_mig(self) -> bool:
        return self.of.board(self.gpu).mig and not self.gpu.resetless
