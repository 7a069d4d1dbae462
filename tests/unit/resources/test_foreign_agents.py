import pytest

from driver.resources import foreign_agents
from tests.fakes import strangers

DRIVER = "gpu.ration.dev"


def of_device(**attributes: str) -> dict[str, object]:
    document = strangers.a_slice(DRIVER)
    shown = {name: {"string": value} for name, value in attributes.items()}
    document["spec"]["devices"] = [{"name": "gpu-0", "attributes": shown}]
    return document


@pytest.mark.parametrize(
    ("resource", "amount", "served"),
    [
        ("nvidia.com/gpu", 8, True),
        ("nvidia.com/gpu.shared", 1, True),
        ("nvidia.com/mig-1g.10gb", 7, True),
        ("nvidia.com/mig-1g.10gb.shared", 7, True),
        ("nvidia.com/gpu", 0, False),
        ("nvidia.com/hostdev", 4, False),
        ("nvidia.com/migration", 4, False),
        ("amd.com/gpu", 8, False),
        ("cpu", 64000, False),
    ],
)
def test_a_device_plugin_is_recognized_by_its_resource(
    resource: str, amount: int, *, served: bool
) -> None:
    assert foreign_agents.device_plugin({resource: amount}) == (
        {resource: amount} if served else {}
    )


@pytest.mark.parametrize(
    ("label", "message"),
    [("pending", "pending"), ("rebooting", "rebooting"), ("success", ""), ("failed", ""), ("", "")],
)
def test_the_mig_manager_is_at_work_in_two_of_its_states(label: str, message: str) -> None:
    assert foreign_agents.mig_state({"nvidia.com/mig.config.state": label}) == message


def test_without_its_label_no_mig_manager_is_at_work() -> None:
    assert foreign_agents.mig_state({}) == ""


def test_a_device_that_does_not_say_who_allocates_it_is_not_ours() -> None:
    results = [of_device(type="gpu", allocator="controller"), strangers.a_slice(DRIVER)]
    assert foreign_agents.find_foreign(results) == (f"node-1-{DRIVER}-x7k2p",)


@pytest.mark.parametrize(
    "attributes",
    [
        {"type": "gpu", "allocator": "controller"},
        {"type": "mig", "allocator": "scheduler"},
        {"type": "gpu-monitor"},
    ],
)
def test_our_own_devices_are_no_strangers(attributes: dict[str, str]) -> None:
    assert foreign_agents.find_foreign([of_device(**attributes)]) == ()


def test_an_allocator_that_we_do_not_know_is_a_strangers_word() -> None:
    assert foreign_agents.find_foreign([of_device(type="gpu", allocator="me")])


def test_a_slice_without_devices_may_be_anybodys() -> None:
    empty = strangers.a_slice(DRIVER)
    del empty["spec"]["devices"]
    assert foreign_agents.find_foreign([empty]) == ()
