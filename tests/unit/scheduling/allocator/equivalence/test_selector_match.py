import dataclasses
from typing import Any

from driver.resources.cel import selector as cel
from driver.resources.dra import slices
from driver.scheduling.allocator.equivalence import selector_match
from tests.support import snapshots
from tests.support.builders import objects

NUMA = f'device.attributes["{snapshots.DRIVER}"].numa == 1'
MEMORY = f'device.capacity["{snapshots.DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
FLAG = f'device.attributes["{snapshots.DRIVER}"].flag == true'


@dataclasses.dataclass(frozen=True, slots=True)
class Counted(cel.Selector):
    """A selector that notes what it is evaluated on."""

    seen: list[cel.Device] = dataclasses.field(default_factory=list)

    def matches(self, device: cel.Device) -> bool | cel.EvaluationFailure:
        self.seen.append(device)
        return cel.Selector.matches(self, device)


def counted(expression: str) -> tuple[selector_match.Matcher, list[cel.Device]]:
    compiled = cel.compile_selector(expression)
    assert isinstance(compiled, cel.Selector), compiled
    values = {field.name: getattr(compiled, field.name) for field in dataclasses.fields(compiled)}
    result = Counted(**values)
    return selector_match.Matcher(result), result.seen


def a_device(name: str, memory: str = "80Gi", **values: Any) -> slices.Device:
    raw = objects.with_values(objects.a_device(name), **values)
    raw["capacity"] = {"memory": {"value": memory}}
    return slices.parse_device(raw, "device")


def test_equal_expressions_have_one_matcher() -> None:
    assert selector_match.get_matcher(NUMA) is selector_match.get_matcher(NUMA)


def test_an_uncompilable_selector_reports_its_reason() -> None:
    matcher = selector_match.get_matcher("device.driver ==")
    assert isinstance(matcher, cel.UnusableSelector)
    assert "Syntax error" in matcher.why


def test_devices_that_look_alike_to_a_selector_are_evaluated_once() -> None:
    matcher, seen = counted(NUMA)
    alike = [a_device(f"gpu-{index}", numa=1, index=index) for index in range(8)]
    assert [matcher.matches(snapshots.DRIVER, device) for device in alike] == [True] * 8
    assert matcher.matches(snapshots.DRIVER, a_device("gpu-8", numa=0)) is False
    assert len(seen) == 2


def test_the_same_attribute_of_another_driver_is_another_value() -> None:
    matcher, seen = counted(NUMA)
    device = a_device("gpu-0", numa=1)
    assert matcher.matches(snapshots.DRIVER, device) is True
    assert isinstance(matcher.matches("nic.example.com", device), cel.EvaluationFailure)
    assert len(seen) == 2


def test_a_qualified_name_is_as_good_as_a_short_one() -> None:
    matcher, _ = counted(NUMA)
    assert (
        matcher.matches(
            snapshots.DRIVER, a_device("gpu-0", "80Gi", **{f"{snapshots.DRIVER}/numa": 1})
        )
        is True
    )


def test_capacity_is_part_of_the_look() -> None:
    matcher, _ = counted(MEMORY)
    assert matcher.matches(snapshots.DRIVER, a_device("gpu-0", "80Gi")) is True
    assert matcher.matches(snapshots.DRIVER, a_device("gpu-0", "24Gi")) is False


def test_true_is_not_taken_for_one() -> None:
    matcher, _ = counted(FLAG)
    assert matcher.matches(snapshots.DRIVER, a_device("gpu-0", flag=True)) is True
    assert matcher.matches(snapshots.DRIVER, a_device("gpu-1", flag=1)) is not True
