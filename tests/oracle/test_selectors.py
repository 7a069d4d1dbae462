"""Our selectors beside Kubernetes' own: the same answer, or a *no* that says it cannot tell."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from driver.resources.cel import checked_expr, environment, selector
from driver.resources.cel.cost import estimator
from driver.resources.dra import slices
from driver.scheduling.allocator.equivalence import selector_match
from tests.oracle import selectors
from tests.oracle.selector_cases import DEVICE, DRIVER, LISTED, SEEN, answered, kind

OURS, THEIRS = f'device.attributes["{DRIVER}"]', 'device.attributes["other.example.com"]'
MEMORY = f'device.capacity["{DRIVER}"].memory'

SAME = (
    "true",
    "!false",
    f'device.driver == "{DRIVER}"',
    'device.driver == "another.example.com"',
    f'{OURS}.type == "gpu"',
    f'{OURS}["type"] == "gpu"',
    f'{OURS}.type != "mig" && {OURS}.cores > 4',
    f'{OURS}.type == "mig" || {OURS}.healthy',
    f"{OURS}.cores == 8",
    f"{OURS}.cores % 3 == 2",
    f"{OURS}.cores / 0 == 1",
    f"{OURS}.cores == 3",
    f'{OURS}.cores == "8"',
    f"{OURS}.type < 3",
    f"{OURS}.healthy ? {OURS}.cores > 4 : false",
    f"{OURS}.nothing == 1",
    f"has({OURS}.nothing)",
    f"has({OURS}.type) && {OURS}.type == 'gpu'",
    f'"type" in {OURS}',
    f'"nothing" in {OURS}',
    f"{OURS}.size() == 4",
    f'{THEIRS}.zone == "a"',
    f'{THEIRS}.zone in ["a", "b"]',
    'device.attributes["absent.example.com"].size() == 0',
    'has(device.attributes["absent.example.com"].x)',
    'device.attributes["absent.example.com"].x == 1',
    f'{OURS}.?type.orValue("") == "gpu"',
    f'{OURS}.?nothing.orValue("none") == "none"',
    f'{OURS}[?"nothing"].hasValue()',
    f'cel.bind(a, {OURS}, a.type == "gpu" && a.cores == 8)',
    f'{OURS}.type.startsWith("g") && {OURS}.type.endsWith("u") && {OURS}.type.contains("p")',
    f'{OURS}.type.matches("^g.u$")',
    f"{OURS}.type.size() == 3",
    f'{OURS}.type.upperAscii() == "GPU"',
    f'{OURS}.type.replace("g", "c") == "cpu"',
    f'{OURS}.type.charAt(1) == "p"',
    f'{OURS}.type.indexOf("u") == 2',
    f'{OURS}.type.substring(1) == "pu"',
    f'{OURS}.type.split("p") == ["g", "u"]',
    '["a", "b"].join("-") == "a-b"',
    '" a ".trim() == "a"',
    "[1, 2, 3].exists(x, x > 2)",
    "[1, 2, 3].all(x, x > 2)",
    "[1, 2, 3].exists_one(x, x > 2)",
    "[1, 2, 3].map(x, x * 2) == [2, 4, 6]",
    "[1, 2, 3].filter(x, x > 1).size() == 2",
    "[1, 2] + [3] == [1, 2, 3]",
    '{"a": 1}["a"] == 1',
    '{"a": 1}.a == 2',
    "int('3') == 3",
    "string(3) == '3'",
    "double(1) == 1.0",
    "duration('1h') > duration('59m')",
    "timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
    "9223372036854775807 + 1 > 0",
    "dyn(1) == 1.0",
    "dyn(1) < 2.5",
    "device.allowMultipleAllocations",
    "[1, 2][2] == 1",
    "1 / 0 == 1",
    f"type({OURS}.cores) == int",
)
"""Matches, fails or is refused here as there."""

AMOUNTS = (
    "0", "1", "-1", "5", "+5", "1.5", "1500m", "1000m", "0m", "-0", "1e3", "1E3", "1e-3", "2e2",
    "1.50", "01", "007Gi", "1k", "1.5k", "0.5k", "0.0001k", "1Ki", "1.5Ki", "1Gi", "80Gi", "1.5Gi",
    "0.5Gi", "1Ei", "7Ei", "8Ei", "16Ei", "1E", "9E", "10E", "1P", "999999999999999999",
    "1000000000000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "99999999999999999999", "123456789012345678.9", "1n", "0.1n", "1u", "1.0000000001", "100M",
    "100Mi", "0.2G", "200M", ".5", "5.", "Mi", "k", "m", "-", "+Mi", ".", ".Mi", "e3", "17Ei",
    "-16Ei", "123456789Ki", "99999Gi", "9999Ti", "99Pi",
)  # fmt: skip
"""Amounts that are written in every way that there is."""
NO_AMOUNTS = (
    "", "Three", "200K", "1,3G", "1.3.4", "--1", "1e", "1e3k", "1 Gi", "Gi1", "0x10", "1e3.5", "٣",
)  # fmt: skip
QUANTITIES = (
    *(f'quantity("{name}").{act}' for name in AMOUNTS for act in (
        'compareTo(quantity("1")) >= 0', "isInteger()", "asInteger() > 0",
        "asApproximateFloat() > 1.4", 'add(quantity("1")).isInteger()', "add(1).asInteger() == 2",
        'sub(quantity("1")).isInteger()', "sub(-1).isInteger()",
    )),
    *(f'sign(quantity("{name}")) == {sign}' for name in AMOUNTS for sign in (-1, 0, 1)),
    *(f'quantity("{name}") == quantity("{other}")' for name, other in (
        ("1000m", "1"), ("1Ki", "1024"), ("1e3", "1k"), ("0.2G", "200M"), ("1n", "0.1n"),
        ("9223372036854775808", "9223372036854775807"), ("16Ei", "8Ei"), ("1.5Gi", "1536Mi"),
        ("-0", "0"), ("1", "2"),
    )),
    *(f'isQuantity("{name}")' for name in (*AMOUNTS, *NO_AMOUNTS)),
    *(f'quantity("{name}").isInteger()' for name in NO_AMOUNTS),
    'quantity("50k").add(20).sub(quantity("100k")).sub(-50000) == quantity("20")',
    'quantity("1.5Gi").add(quantity("0")).isInteger()',
    'quantity("0").add(quantity("1000m")).isInteger()',
    'quantity("7Ei").add(quantity("7Ei")).isInteger()',
    f'{MEMORY}.compareTo(quantity("40Gi")) >= 0',
    f'{MEMORY}.isGreaterThan(quantity("80Gi"))',
    f'{MEMORY}.isLessThan(quantity("81Gi"))',
    f"{MEMORY}.asInteger() == 80 * 1024 * 1024 * 1024",
    f'{MEMORY} == quantity("81920Mi")',
    f'device.capacity["{DRIVER}"].nothing == quantity("1")',
    f'"memory" in device.capacity["{DRIVER}"]',
    'device.capacity["absent.example.com"].?memory.orValue(quantity("0")) == quantity("0")',
    f'{OURS}.cores == quantity("8")',
    '[quantity("1"), quantity("2")].exists(q, q.isGreaterThan(quantity("1")))',
)  # fmt: skip

LISTS = (
    "[1, 2, 3].sum() == 6", "[1.5, 2.5].sum() == 4.0", "[].sum() == 0", "[1u, 2u].sum() == 3u",
    "dyn([1, 2]).sum() == 3",
    "[2, 1].min() == 1", "[2, 1].max() == 2", '["b", "a"].min() == "a"', "[1.5, 0.5].max() == 1.5",
    "[true, false].min() == false", "[].min() == 1", "[].max() == 1", "([0] + []).min() == 0",
    '[b"b", b"a"].min() == b"a"',
    "[1, 2, 2].isSorted()", "[2, 1].isSorted()", "[].isSorted()", "[1].isSorted()",
    '["a", "b", "b"].isSorted()', "[false, true].isSorted()", "[2.0, 1.0].isSorted()",


    '"abc".indexOf("c") == 2', '"abcb".lastIndexOf("b") == 3',
    "[1, 2].includes(2)", "[1, 2].includes(3)", '"a".includes("a")', '"a".includes("b")',
    '"a".includes(1)', '[1].includes("1")', "[].includes(1)", "1.includes(1)",
    "dyn([1]).includes(1.0)",
    'dyn(["a"]).sum() == "a"',
    f'{OURS}.type.includes("gpu")', f"{OURS}.cores.includes(8)", f"{OURS}.healthy.includes(true)",
    f'{OURS}.nothing.includes("gpu")',
    "sets.contains([1, 2], [1])", "sets.contains([1], [1, 2])", "sets.contains([], [])",
    "sets.intersects([1], [2])", "sets.intersects([1, 2], [2])", "sets.equivalent([1, 1], [1])",
    'sets.contains(["a"], ["a"])', "sets.equivalent([1, 2], [2, 1])", "sets.intersects([], [1])",
)  # fmt: skip

REFUSED = (
    "1",
    '"a"',
    "1 == 1.0",
    '1 == "a"',
    "undeclared == 1",
    "undeclared(1)",
    "true &&",
    "[1, 2, 3].exists(x, y > 2)",
    '"abc".nosuch()',
    '["a"].sum() == "a"',
    '[quantity("1")].sum() == quantity("1")',
    '[{"a": 1}].min() == {"a": 1}',
    "1.sum() == 1",
    '[1].indexOf("a") == 0',
    "sets.contains(1, [1])",
    '"a".isGreaterThan(quantity("1"))',
    'quantity("1").isGreaterThan("1")',
    "quantity(1)",
    'quantity("1") + quantity("2") == quantity("3")',
    'quantity("1") < quantity("2")',
    'quantity("5").sign() == 1',
    'quantity("1").add("1") == quantity("2")',
    "device.driver",
    "device.nothing == 1",
    f'{MEMORY} == "80Gi"',
    "has(device.nothing)",
    "type(1) == int",
    f"{OURS}.all(a, {OURS}.all(b, {OURS}.all(c, {OURS}.all(d, a + b + c != d))))",
)
"""Compiles on neither side."""

LATER = (
    f'{OURS}.driverVersion == "580.82.7"',
    f'{OURS}.driverVersion in ["580.82.7"]',
)
"""Kubernetes fails to compare a version with anything else; here it is no other value's equal."""

NOT_PROVIDED = {
    "has(device.capacity)": "the engine has types of maps of quantities for variables alone",
    "device.?driver.hasValue()": "device is no value to the engine, only what is read of it",
    "device == device": "as above",
    "device.attributes == device.attributes": "as above",
    "[device.attributes].size() == 1": "as above",
    "[1, 2].exists_one(i, v, v == 2)": "the engine knows existsOne, the other name of it",
    '"%e".format([1.5]) == "1.5"': "the engine writes this verb otherwise",
    '("%" + "d").format([1]) == "1"': "so that no such verb gets through",
    'format.uuid().validate("x").value().size() == 1': "Kubernetes' words are not ours",
    '[duration("1s")].indexOf(duration("1s")) == 0': "Python's durations are coarser",
    '{"a": 1, "a": 2}["a"] == 2': "the engine fails on a key that comes twice",
    "{1.5: 1}[1.5] == 1": "the engine takes no such keys",
    f"has({OURS}.type.x)": "the engine fails on what has no fields",
    "[9223372036854775808u].sum() > 0u": "Python's numbers are ints to the engine",
    "+".join(["1"] * 40) + " == 40": "the engine parses no deeper than 32",
    "lists.range(2000).map(x, x).size() == 2000": "the engine copies a list as it grows",
    "lists.range(20000).all(x, x >= 0)": "the engine goes through 10,000 items at most",
}
"""Kubernetes answers; here it ends as not allocated, with the reason."""

FAMILIES = sorted(Path("tests/data/selectors").glob("*.txt"))
"""An expression a line: 1,500 over every family of functions, edge values among them."""


@pytest.fixture(scope="module")
def reference(built: Path) -> Iterator[selectors.Selectors]:
    with selectors.Selectors(built) as running:
        yield running


def ours(expression: str) -> selectors.Verdict | selector.UnusableSelector:
    """Return what the allocator makes of the device in a slice."""
    return answered(
        expression, selector_match.cel_device(DRIVER, slices.parse_device(DEVICE, "device"))
    )


@pytest.mark.parametrize("expression", [*SAME, *QUANTITIES, *LISTS])
def test_a_selector_gives_the_same_answer(reference: selectors.Selectors, expression: str) -> None:
    assert kind(ours(expression)) == kind(reference.matches(expression, DEVICE, DRIVER))


@pytest.mark.parametrize("expression", REFUSED)
def test_expressions_refused_by_kubernetes_do_not_compile(
    reference: selectors.Selectors, expression: str
) -> None:
    assert isinstance(reference.matches(expression, DEVICE, DRIVER), selectors.Refused)
    assert isinstance(ours(expression), selector.UnusableSelector)


@pytest.mark.parametrize("expression", LATER)
def test_expressions_refused_only_by_kubernetes_match_nothing(
    reference: selectors.Selectors, expression: str
) -> None:
    matches = reference.matches(expression, DEVICE, DRIVER)
    assert isinstance(matches, selectors.Refused | selectors.Failed)
    assert ours(expression) is not True


@pytest.mark.parametrize("expression", NOT_PROVIDED)
def test_expressions_not_provided_are_refused_and_never_guessed(
    reference: selectors.Selectors, expression: str
) -> None:
    assert isinstance(reference.matches(expression, DEVICE, DRIVER), bool)
    assert not isinstance(ours(expression), bool)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda path: path.stem)
def test_a_family_of_functions_answers_as_kubernetes_does(
    reference: selectors.Selectors, family: Path
) -> None:
    different = {}
    for expression in family.read_text().splitlines():
        present = kind(reference.matches(expression, LISTED, DRIVER))
        here = kind(answered(expression, SEEN))
        if here != present:
            different[expression] = (here, present)
    assert different == {}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda path: path.stem)
def test_an_expression_may_cost_what_kubernetes_says(
    reference: selectors.Selectors, family: Path
) -> None:
    different = {}
    for expression in family.read_text().splitlines():
        cost = reference.cost(expression)
        here = estimated(expression)
        if None not in {here, cost} and here != cost:
            different[expression] = (here, cost)
    assert different == {}


def estimated(expression: str) -> int | None:
    try:
        return estimator.estimate_cost(
            checked_expr.read(environment.checking_env().compile(expression))
        )
    except RuntimeError:
        return None
