"""Cost and result size of one call (apiserver pkg/cel/library/cost.go). Pure.

Functions that Kubernetes does not estimate use cel-go's estimates (checker/cost.go,
ext/{lists,sets}.go).
"""

import math
from collections.abc import Callable
from typing import Final

from driver.resources.cel import checked_expr, messages
from driver.resources.cel.cost.sizes import BYTES, MOST, STRING, UNKNOWN, Size, Sizes, add

_TRAVERSAL: Final = 0.1
_PATTERN: Final = 0.25
_LIST: Final = 10
_LONGEST_FORMAT: Final = 128
_ADDRESS: Final = 16
Estimate = tuple[int, Size | None]
_Act = Callable[[Sizes, checked_expr.Call], Estimate]


def estimate_call(sizes: Sizes, node: checked_expr.Call, overload: str) -> Estimate:
    """The cost of an overload, its arguments' apart, and the size of its result if it is known."""
    for act in (_BY_OVERLOAD.get(overload), _BY_FUNCTION.get(node.function), _CORE.get(overload)):
        result = act(sizes, node) if act is not None else None
        if result is not None and result[0] >= 0:
            return min(result[0], MOST), result[1]
    if overload.endswith(("_sort", "_sortByAssociatedKeys")):
        operand = node.arguments[0] if node.arguments or node.target is None else node.target
        textual = overload.startswith(("list_string_", "list_bytes_"))
        return _allocating(2.1 if textual else 2, _squared(sizes.bound(operand)))
    return 1, None


def _scaled(amount: int, factor: float) -> int:
    return min(math.ceil(float(amount) * factor), MOST)


def _squared(size: Size) -> Size:
    return min(size[0] ** 2, MOST), min(size[1] ** 2, MOST)


def _allocating(factor: float, size: Size) -> Estimate:
    return min(_scaled(size[1], factor) + 1 + _LIST, MOST), size


def _on(sizes: Sizes, node: checked_expr.Call) -> Size:
    return UNKNOWN if node.target is None else sizes.bound(node.target)


def _first(sizes: Sizes, node: checked_expr.Call) -> Size:
    return sizes.bound(node.arguments[0]) if node.arguments else UNKNOWN


def _number(node: checked_expr.Node, otherwise: int) -> int:
    if isinstance(node, checked_expr.Constant) and isinstance(node.value, int):
        return max(node.value, 0) if node.kind == "integer" else otherwise
    return otherwise


def _fixed(_sizes: Sizes, _node: checked_expr.Call) -> Estimate:
    return 1, None


def _reading(factor: float = _TRAVERSAL) -> _Act:
    """A text is gone through."""
    return lambda sizes, node: (_scaled(_first(sizes, node)[1], factor), None)


def _url(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    size = _first(sizes, node)
    return _scaled(size[1], _TRAVERSAL), size


def _changed(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    """A text of at most the same length."""
    size = _on(sizes, node)
    return _scaled(size[1], _TRAVERSAL), size


def _through(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    """A list is gone through, and texts within it."""
    if node.target is None:
        return -1, None
    most = _on(sizes, node)[1]
    element = sizes.element(node.target)
    if element is not None:
        size, primitive = element
        each = 1 + (_scaled(size[1], _TRAVERSAL) if primitive in {STRING, BYTES} else 0)
        return most * each, None
    return (most if node.function == "includes" else _scaled(most, _TRAVERSAL)), None


def _replace(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    size = _on(sizes, node)
    old, new = (sizes.bound(item) for item in node.arguments[:2])
    least = most = kept_least = kept_most = 0
    if old[0] == 0:
        most, kept_most = min(size[1] + 1, MOST), size[1]
    elif new[1] <= old[0]:
        kept_most = size[1]
    else:
        most = math.ceil(size[1] / old[0])
    if old[1] == 0:
        least, kept_least = size[0] + 1, size[0]
    elif old[1] <= new[0]:
        kept_least = size[0]
    else:
        least = math.ceil(size[0] / old[1])
    result = (min(least * new[0] + kept_least, MOST), min(most * new[1] + kept_most, MOST))
    return _scaled(size[1], 2 * _TRAVERSAL), result


def _split(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    size = _on(sizes, node)
    most = size[1]
    if len(node.arguments) > 1:
        limit = node.arguments[1]
        if isinstance(limit, checked_expr.Constant) and isinstance(limit.value, int):
            most = limit.value % (MOST + 1)
    return _scaled(size[1], 2 * _TRAVERSAL), (0, most)


def _join(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    items = _on(sizes, node)
    element = None if node.target is None else sizes.element(node.target)
    least = most = 0
    if element is not None:
        least, most = items[0] * element[0][0], items[1] * element[0][1]
    if node.arguments:
        between = _first(sizes, node)
        least += between[0] * max(items[0] - 1, 0)
        most += between[1] * max(items[1] - 1, 0)
    result = min(least, MOST), min(most, MOST)
    return _scaled(result[1], _TRAVERSAL), result


def _matched(text: Size, pattern: Size) -> int:
    return _scaled(min(text[1] + 1, MOST), _TRAVERSAL) * _scaled(pattern[1], _PATTERN)


def _find(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    size = _on(sizes, node)
    return _matched(size, _first(sizes, node)), (0, size[1])


def _matches(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    text_size = [sizes.bound(argument) for argument in node.arguments]
    text, pattern = text_size if node.target is None else (_on(sizes, node), text_size[0])
    return _matched(text, pattern), None


def _ip(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    return _fixed(sizes, node) if node.target is not None else _reading()(sizes, node)


def _contains_address(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    cost = _scaled(2 * _ADDRESS, _TRAVERSAL)
    if node.function == "containsCIDR":
        cost += _scaled(_ADDRESS, _TRAVERSAL) + 1
    argument = node.arguments[0]
    if sizes.node_type(argument).primitive == STRING or not sizes.node_type(argument).message:
        cost += _scaled(sizes.bound(argument)[1], _TRAVERSAL)
    return cost, None


def _validate(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    text = _scaled(_first(sizes, node)[1], _TRAVERSAL)
    return _scaled(text, _LONGEST_FORMAT * _PATTERN), None


def _equal(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    item, other = (sizes.node_type(side) for side in node.arguments)
    if item != other or item.message not in messages.ADDED:
        return -1, None
    if item.message == messages.FORMAT:
        return 7, None
    if item.message == messages.URL:
        size = sizes.node_size(node.arguments[1])
        return _scaled(1 if size is None else max(size[1], 1), _TRAVERSAL), None
    return 1, None


def _compared(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    most = min(sizes.bound(side)[1] for side in node.arguments)
    return _scaled(most, _TRAVERSAL), None


def _contains(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    here = _scaled(_on(sizes, node)[1], _TRAVERSAL)
    return here * _scaled(_first(sizes, node)[1], _TRAVERSAL), None


def _member(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    return sizes.bound(node.arguments[1])[1], None


def _joined(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    size = add(*(sizes.bound(side) for side in node.arguments))
    return _scaled(size[1], _TRAVERSAL), size


def _concatenated(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    return 1, add(*(sizes.bound(side) for side in node.arguments))


def _to_bytes(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    least, most = _first(sizes, node)
    return _scaled(most, _TRAVERSAL), (least, min(most * 4, MOST))


def _to_text(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    least, most = _first(sizes, node)
    return _scaled(most, _TRAVERSAL), (least // 4, most)


def _quoted(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    least, most = _first(sizes, node)
    return _scaled(most, _TRAVERSAL), (least + 2, min(most * 2 + 2, MOST))


def _formatted(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    return _scaled(_on(sizes, node)[1], _TRAVERSAL), None


def _sets(factor: float) -> _Act:
    def act(sizes: Sizes, node: checked_expr.Call) -> Estimate:
        item, other = (sizes.bound(side)[1] for side in node.arguments)
        return _scaled(min(item * other, MOST), factor) + 1, None

    return act


def _slice(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    start = _number(node.arguments[0], 0)
    length = (_number(node.arguments[1], _on(sizes, node)[1]) - start) % (MOST + 1)
    return _allocating(1, (length, length))


def _range(_sizes: Sizes, node: checked_expr.Call) -> Estimate:
    length = _number(node.arguments[0], MOST)
    return _allocating(1, (length, length))


def _flatten(sizes: Sizes, node: checked_expr.Call) -> Estimate:
    depth = _number(node.arguments[0], MOST) if node.arguments else 1
    return _allocating(depth, _on(sizes, node))


_BY_OVERLOAD: Final[dict[str, _Act]] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_range": _range,
    "list_reverse": lambda sizes, node: _allocating(1, _on(sizes, node)),
    "list_distinct": lambda sizes, node: _allocating(2, _squared(_on(sizes, node))),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
_BY_FUNCTION: Final[dict[str, _Act]] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _through
    ),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _changed),
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(
        ("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _reading()
    ),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains_address),
    "ip.isCanonical": _reading(2 * _TRAVERSAL),
    "ip": _ip,
    "url": _url,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "validate": _validate,
    "_==_": _equal,
}
_ORDERS: Final = ("less", "less_equals", "greater", "greater_equals")
_CORE: Final[dict[str, _Act]] = {
    **{f"{order}_{of}": _compared for order in _ORDERS for of in ("string", "bytes")},
    "equals": _compared,
    "not_equals": _compared,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
    "starts_with_string": _reading(),
    "ends_with_string": _reading(),
    "in_list": _member,
    "add_string": _joined,
    "add_bytes": _joined,
    "add_list": _concatenated,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_text,
    "strings_quote": _quoted,
    "string_format": _formatted,
}
