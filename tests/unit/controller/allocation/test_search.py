from driver.controller.allocation import search
from driver.resources import claims


def devices(*names: str) -> list[claims.DeviceId]:
    return [claims.DeviceId("d", "p", name) for name in names]


def chosen(found: search.Found) -> list[str | None]:
    return [None if one is None else one.device for one in found.devices]


def test_slots_take_devices_in_the_order_offered() -> None:
    assert chosen(search.match([devices("a", "b"), devices("a", "b")])) == ["a", "b"]


def test_an_earlier_slot_moves_for_a_later_one_that_has_no_choice() -> None:
    assert chosen(search.match([devices("a", "b"), devices("a")])) == ["b", "a"]


def test_a_chain_of_moves_is_followed_to_its_end() -> None:
    slots = [devices("a", "b"), devices("b", "c"), devices("a"), devices("b")]
    found = search.match(slots)
    assert found.filled == 3
    slots = [devices("a", "b"), devices("b", "c"), devices("a")]
    assert chosen(search.match(slots)) == ["b", "c", "a"]


def test_a_slot_without_a_device_stays_empty() -> None:
    found = search.match([devices("a"), devices("a")])
    assert (found.filled, chosen(found)) == (1, ["a", None])
