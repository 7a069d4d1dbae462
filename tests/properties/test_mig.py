"""Tests of what MIG never does, whatever is asked of it."""

import itertools
from collections.abc import Callable

import hypothesis
from hypothesis import stateful
from hypothesis import strategies as st

from simulator import client, codes, geometry, library, machine

MACHINE = machine.build("hgx-h100", seed="node-1").profile
PROFILES = [shape.id for shape in geometry.SHAPES[8].values()]


def attempt(
    call: Callable[..., client.Handle | None], *arguments: object
) -> tuple[codes.Return, client.Handle]:
    """The call's code, and the handle it gave if any."""
    try:
        return codes.Return.SUCCESS, call(*arguments) or client.Handle("")
    except codes.NvmlError as e:
        return e.code, client.Handle("")


class MigMachine(stateful.RuleBasedStateMachine):
    """One GPU, driven at random by calls that may be refused."""

    def __init__(self) -> None:
        super().__init__()
        self.nvml = library.Library(machine.Machine(MACHINE, "node-1"))
        self.nvml.init()
        self.gpu = self.nvml.device_get_handle_by_index(0)
        self.nvml.device_set_mig_mode(self.gpu, 1)
        self.uuids: list[str] = []
        self.ids: dict[tuple[int, int, int], int] = {}

    def instances(self) -> list[client.Handle]:
        handles = (self.nvml.device_get_gpu_instances(self.gpu, number) for number in PROFILES)
        return list(itertools.chain.from_iterable(handles))

    @stateful.rule(profile=st.sampled_from(PROFILES), which=st.integers(0, 6))
    def create_at(self, profile: int, which: int) -> None:
        places = self.nvml.device_get_gpu_instance_possible_placements(self.gpu, profile)
        placement = places[which % len(places)]
        taken = [
            self.nvml.gpu_instance_get_info(instance).placement for instance in self.instances()
        ]
        room = self.nvml.device_get_gpu_instance_remaining_capacity(self.gpu, profile)
        fits = room > 0 and not any(placement.overlaps(other) for other in taken)
        created = self.nvml.device_create_gpu_instance_with_placement
        code, handle = attempt(created, self.gpu, profile, placement.start, placement.size)
        if not fits:
            assert code is codes.Return.INSUFFICIENT_RESOURCES
            return
        assert code is codes.Return.SUCCESS
        info = self.nvml.gpu_instance_get_info(handle)
        values = (profile, placement.start, placement.size)
        assert self.ids.setdefault(values, info.id) == info.id

    @stateful.rule(which=st.integers(0, 6), profile=st.sampled_from(list(geometry.COMPUTE_SLICES)))
    def create_compute(self, which: int, profile: int) -> None:
        for instance in self.instances()[which : which + 1]:
            room = self.nvml.gpu_instance_get_compute_instance_remaining_capacity(instance, profile)
            created = self.nvml.gpu_instance_create_compute_instance
            code, handle = attempt(created, instance, profile)
            if room == 0:
                assert code is codes.Return.INSUFFICIENT_RESOURCES
                continue
            assert code is codes.Return.SUCCESS
            device = self.nvml.compute_instance_get_info(handle).device
            self.uuids.append(self.nvml.device_get_uuid(device))

    @stateful.rule(which=st.integers(0, 6))
    def destroy_compute(self, which: int) -> None:
        for instance in self.instances()[which : which + 1]:
            for profile in geometry.COMPUTE_SLICES:
                for (
                    gpu_instance_get_compute_instance
                ) in self.nvml.gpu_instance_get_compute_instances(instance, profile):
                    self.nvml.compute_instance_destroy(gpu_instance_get_compute_instance)

    @stateful.rule(which=st.integers(0, 6))
    def destroy(self, which: int) -> None:
        for instance in self.instances()[which : which + 1]:
            held = any(
                self.nvml.gpu_instance_get_compute_instances(instance, profile)
                for profile in geometry.COMPUTE_SLICES
            )
            code, _ = attempt(self.nvml.gpu_instance_destroy, instance)
            assert code is (codes.Return.IN_USE if held else codes.Return.SUCCESS)

    @stateful.rule()
    def reboot(self) -> None:
        self.nvml.machine.reboot()
        assert self.nvml.device_set_mig_mode(self.gpu, 1) == codes.Return.SUCCESS

    @stateful.invariant()
    def placements_never_overlap_and_ids_are_distinct(self) -> None:
        infos = [self.nvml.gpu_instance_get_info(instance) for instance in self.instances()]
        for instance_info, other in itertools.combinations(infos, 2):
            assert not instance_info.placement.overlaps(other.placement)
            assert instance_info.id != other.id

    @stateful.invariant()
    def the_remaining_capacity_is_what_can_be_created(self) -> None:
        taken = [
            self.nvml.gpu_instance_get_info(instance).placement for instance in self.instances()
        ]
        for profile in (19, 15, 14, 9, 5):
            places = self.nvml.device_get_gpu_instance_possible_placements(self.gpu, profile)
            free = [
                placement
                for placement in places
                if not any(placement.overlaps(other) for other in taken)
            ]
            room = self.nvml.device_get_gpu_instance_remaining_capacity(self.gpu, profile)
            assert room == len(free)

    @stateful.invariant()
    def a_uuid_is_never_given_twice(self) -> None:
        assert len(set(self.uuids)) == len(self.uuids)


TestMig = MigMachine.TestCase
TestMig.settings = hypothesis.settings(max_examples=40, stateful_step_count=30)
