"""Expressions of the grammar of selectors, mostly of the right types. For hypothesis."""

from hypothesis import strategies as st

Expressions = st.SearchStrategy[str]
DOMAIN = 'device.attributes["gpu.example.com"]'
_WORDS = (
    "",
    "a",
    "gpu",
    "1.2.3",
    "10.0.0.0/8",
    "10.1.2.3",
    "::1",
    "http://h/p?q=1",
    "80Gi",
    "é",
    "1",
)
_PATTERNS = ("", "a", "[0-9]+", "g.u", "^a*$", "(a|b)+")

texts: Expressions = st.deferred(lambda: _plain_texts | _made_texts)
numbers: Expressions = st.deferred(lambda: _plain_numbers | _made_numbers)
lists: Expressions = st.deferred(lambda: _plain_lists | _made_lists)
truths: Expressions = st.deferred(lambda: _plain_truths | _made_truths)

_plain_texts: Expressions = st.sampled_from(
    [*(f'"{word}"' for word in _WORDS), f"{DOMAIN}.type", "device.driver", f"{DOMAIN}.nothing"]
)
_plain_numbers: Expressions = st.one_of(
    st.integers(-3, 9).map(str),
    st.sampled_from(["9223372036854775807", f"{DOMAIN}.cores", f"{DOMAIN}.numbers[1]"]),
)
_plain_lists: Expressions = st.sampled_from(
    ["[1, 2, 3]", "[3, 1, 2]", f"{DOMAIN}.numbers", "[7]", "lists.range(4)", "[2, 2]"]
)
_plain_truths: Expressions = st.sampled_from(
    ["true", "false", f"{DOMAIN}.healthy", f"has({DOMAIN}.nothing)", f"has({DOMAIN}.type)"]
)
_versions = st.one_of(
    texts.map(lambda text: f"semver({text})"),
    st.sampled_from([f"{DOMAIN}.driverVersion", f"{DOMAIN}.versions[0]", 'semver("1.0.0-rc.1")']),
)
_quantities = st.sampled_from(
    [
        'device.capacity["gpu.example.com"].memory',
        'quantity("1.5Gi")',
        'quantity("0")',
        'device.capacity["gpu.example.com"].nothing',
    ]
)
_ordered = st.one_of(
    st.tuples(texts, texts), st.tuples(numbers, numbers), st.tuples(truths, truths)
)


def _of(form: str, *parts: Expressions) -> Expressions:
    return st.tuples(*parts).map(lambda results: form.format(*results))


_made_texts: Expressions = st.one_of(
    _of("({} + {})", texts, texts),
    _of("{}.substring({})", texts, numbers),
    _of("{}.replace({}, {})", texts, texts, texts),
    _of("{}.charAt({})", texts, numbers),
    _of("{}.lowerAscii()", texts),
    _of("{}.split({}).join({})", texts, texts, texts),
    _of('{}.find("{}")', texts, st.sampled_from(_PATTERNS)),
    _of("string({})", numbers | truths),
    _of("url({}).getHost()", texts),
    _of("string(cidr({}).masked())", texts),
    _of("({} ? {} : {})", truths, texts, texts),
    _of("cel.bind(t, {}, t + t)", texts),
    _of("optional.ofNonZeroValue({}).orValue({})", texts, texts),
)
_made_numbers: Expressions = st.one_of(
    _of("({} {} {})", numbers, st.sampled_from(["+", "-", "*", "/", "%"]), numbers),
    _of("{}.size()", texts | lists),
    _of("{}.{}()", lists, st.sampled_from(["sum", "min", "max"])),
    _of("{}.indexOf({})", lists, numbers),
    _of("{}.lastIndexOf({})", texts, texts),
    _of("{}[{}]", lists, numbers),
    _of("int({})", texts | numbers),
    _of("{}.{}()", _versions, st.sampled_from(["major", "minor", "patch"])),
    _of("{}.compareTo({})", _versions, _versions),
    _of("sign({})", _quantities),
    _of("ip({}).family()", texts),
    _of('{}.findAll("{}").size()', texts, st.sampled_from(_PATTERNS)),
    _of("({} ? {} : {})", truths, numbers, numbers),
)
_made_lists: Expressions = st.one_of(
    _of("({} + {})", lists, lists),
    _of("{}.map(x, x + {})", lists, numbers),
    _of("{}.filter(x, x > {})", lists, numbers),
    _of("{}.{}()", lists, st.sampled_from(["sort", "reverse", "distinct"])),
    _of("{}.slice({}, {})", lists, numbers, numbers),
    _of("{}.sortBy(x, -x)", lists),
    _of("{}.transformList(i, x, i * x)", lists),
)
_made_truths: Expressions = st.one_of(
    _ordered.flatmap(
        lambda pair: st.sampled_from(["==", "!=", "<", ">="]).map(
            lambda sign: f"({pair[0]} {sign} {pair[1]})"
        )
    ),
    _of("({} {} {})", truths, st.sampled_from(["&&", "||"]), truths),
    _of("!{}", truths),
    _of("{}.{}({})", texts, st.sampled_from(["contains", "startsWith", "includes"]), texts),
    _of('{}.matches("{}")', texts, st.sampled_from(_PATTERNS)),
    _of("{}.{}(x, x > {})", lists, st.sampled_from(["all", "exists", "exists_one"]), numbers),
    _of("{}.exists(i, x, i == x)", lists),
    _of("({} in {})", numbers, lists),
    _of("{}.isSorted()", lists),
    _of("sets.{}({}, {})", st.sampled_from(["contains", "equivalent"]), lists, lists),
    _of("{}.isGreaterThan({})", _versions, _versions),
    _of("{}.isLessThan({})", _quantities, _quantities | _versions),
    _of("{}({})", st.sampled_from(["isSemver", "isIP", "isCIDR", "isURL", "isQuantity"]), texts),
    _of("cidr({}).containsIP({})", texts, texts),
    _of("format.dns1123Label().validate({}).hasValue()", texts),
    _of("cel.bind(a, {}, a.exists(x, x == {}))", lists, numbers),
    _of('cel.bind(d, device.attributes["{}"], {})', st.sampled_from(["x", "y"]), truths),
    _of("({} == {})", numbers | texts, numbers | texts),
)
