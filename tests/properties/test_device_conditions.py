"""Whatever is said and whatever fails: the claim ends with the last word of each type."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from driver import errors, ids, names, reasons
from driver.kubeletplugin import ports
from driver.kubeletplugin.status import claim_status as claim_statuses
from tests.fakes import claim_status
from tests.fakes import clock as clocks
from tests.support.builders import objects

REF = ports.ClaimRef("default", "claim", ids.ClaimUid(objects.uid_of("claim")))
NIC = {"driver": "nic.example.com", "pool": "p", "device": "nic-0"}
OURS = {"driver": names.DRIVER, "pool": "node-a", "device": "gpu-0"}
THEIRS = {
    "type": "ration.dev/GangReady",
    "status": "True",
    "reason": "Together",
    "message": "",
    "lastTransitionTime": "2026-11-21T08:00:00Z",
}
words = st.builds(
    ports.ConditionUpdate,
    type=st.sampled_from([names.CONDITION_READY, names.CONDITION_WITHIN_SHARE]),
    holds=st.sampled_from([True, False, None]),
    reason=st.sampled_from([reasons.Reason.PREPARED, reasons.Reason.DEVICE_OVERLAP]),
    message=st.sampled_from(["a", "b", "x" * 2000]),
    permanent=st.booleans(),
)
troubles = st.sampled_from(
    [
        errors.Forbidden(403, "Forbidden", "no"),
        errors.Conflict(409, "Conflict", "changed"),
        errors.ServerError(500, "InternalError", "etcd"),
        errors.TooManyRequests(429, "TooManyRequests", "slow down", 3.0),
        errors.Unreachable(0, "", "connection refused"),
    ]
)
RESTART = "restart"
steps = st.lists(st.one_of(words, troubles, st.floats(0.0, 90.0), st.just(RESTART)), max_size=30)
STATUS = {True: "True", False: "False", None: "Unknown"}


class World:
    def __init__(self) -> None:
        self.api = claim_status.ClaimStatus()
        self.time = clocks.FakeClock()
        raw = objects.a_claim(status=objects.allocated("node-a", "gpu-0", "gpu-1"))
        raw["status"]["allocation"]["devices"]["results"].append({"request": "nic", **NIC})
        self.api.put(raw)
        theirs = [{**entry, "conditions": [THEIRS]} for entry in (OURS, NIC)]
        self.api.apply_as("claim", "another", {"status": {"devices": theirs}})
        self.said: dict[str, ports.ConditionUpdate] = {}
        self.restart()

    def restart(self) -> None:
        self.plugin = claim_statuses.ClaimStatusWriter(
            names.DRIVER, "node-a", self.api, self.time, lambda: 0.5
        )

    def do(self, step: ports.ConditionUpdate | errors.ApiError | float | str) -> None:
        match step:
            case ports.ConditionUpdate():
                self.said[step.type] = step
                self.plugin.set_condition(REF, step)
            case errors.ApiError():
                self.api.trouble.append(step)
            case str():
                self.settle()  # what was never written may be lost with the process
                self.restart()
            case _:
                self.time.advance(step)
                self.plugin.write_due()

    def settle(self) -> None:
        self.api.trouble.clear()
        self.time.advance(100)
        self.plugin.write_due()


@given(steps)
def test_the_claim_ends_with_the_last_word_of_each_type_and_others_words_stay(
    taken: list[ports.ConditionUpdate | errors.ApiError | float | str],
) -> None:
    world = World()
    for step in taken:
        world.do(step)
    world.settle()
    expected = {
        kind: (STATUS[condition_update.holds], condition_update.reason.value)
        for kind, condition_update in world.said.items()
    }
    ready = world.said.get(names.CONDITION_READY)
    if ready is not None and ready.permanent:
        expected[names.CONDITION_STALLED] = ("True", ready.reason.value)
    for device in ("gpu-0", "gpu-1"):
        result = {
            kind: condition[:2] for kind, condition in world.api.conditions("claim", device).items()
        }
        result.pop(THEIRS["type"], None)
        assert result == expected
    first, nic, *_ = world.api.raw("claim")["status"]["devices"]
    assert THEIRS in first["conditions"]
    assert nic == {**NIC, "conditions": [THEIRS]}
    previous, applied = copy.deepcopy(world.api.raw("claim")), world.api.applied
    for word in world.said.values():
        world.do(word)
    world.settle()
    assert (world.api.raw("claim"), world.api.applied) == (previous, applied)
