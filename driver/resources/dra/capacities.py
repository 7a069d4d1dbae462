"""Capacities of a device, and how much of one a request may take (KEP-5075). Both ways."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from driver.resources import fields, quantities
from driver.resources.dra import interning

Raw = dict[str, object]
Unit = Callable[[int], quantities.Quantity]
"""How an amount is written: `quantities.from_bytes` or `quantities.from_units`."""


@dataclass(frozen=True, slots=True)
class Range:
    """`validRange`: from `minimum`, in steps, at most `maximum`; None where there is no bound."""

    minimum: quantities.Quantity
    maximum: quantities.Quantity | None = None
    step: quantities.Quantity | None = None


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """Default amount of a request that names none, and the amounts that it may name.

    At most one of `values` and `range` is set; with neither, any amount is valid.
    """

    default: quantities.Quantity
    values: tuple[quantities.Quantity, ...] = ()
    range: Range | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """An amount; without a policy, and on a device that is not shared, it is used whole."""

    value: quantities.Quantity
    policy: RequestPolicy | None = None


def parse_all(obj: fields.Raw, path: str) -> Mapping[str, Capacity]:
    """Read the capacities of a device; equal ones are one object. Raises BadInput."""
    return _shared(obj, path)


def _parse_all(obj: fields.Raw, path: str) -> Mapping[str, Capacity]:
    return {key: parse(fields.mapping(obj, key, path), f"{path}[{key}]") for key in obj}


_shared = interning.interning_reader(_parse_all)


def parse(obj: fields.Raw, path: str) -> Capacity:
    """Read one capacity. Raises BadInput."""
    policy = obj.get("requestPolicy")
    return Capacity(
        quantities.parse(obj.get("value"), f"{path}.value"),
        _parse_policy(fields.mapping(obj, "requestPolicy", path), f"{path}.requestPolicy")
        if policy
        else None,
    )


def _parse_policy(obj: fields.Raw, path: str) -> RequestPolicy:
    span = fields.mapping(obj, "validRange", path)
    return RequestPolicy(
        default=quantities.parse(obj.get("default"), f"{path}.default"),
        values=tuple(
            quantities.parse(value, f"{path}.validValues")
            for value in fields.sequence(obj, "validValues", path)
        ),
        range=_parse_range(span, f"{path}.validRange") if span else None,
    )


def _parse_range(obj: fields.Raw, path: str) -> Range:
    maximum, step = obj.get("max"), obj.get("step")
    return Range(
        quantities.parse(obj.get("min"), f"{path}.min"),
        None if maximum is None else quantities.parse(maximum, f"{path}.max"),
        None if step is None else quantities.parse(step, f"{path}.step"),
    )


def render(capacity: Capacity) -> Raw:
    """Return it as the API writes it."""
    shown: Raw = {"value": capacity.value.text}
    if capacity.policy is not None:
        shown["requestPolicy"] = _render_policy(capacity.policy)
    return shown


def _render_policy(policy: RequestPolicy) -> Raw:
    shown: Raw = {"default": policy.default.text}
    if policy.values:
        shown["validValues"] = [value.text for value in policy.values]
    if policy.range is not None:
        bounds: Mapping[str, quantities.Quantity | None] = {
            "min": policy.range.minimum,
            "max": policy.range.maximum,
            "step": policy.range.step,
        }
        shown["validRange"] = {
            key: quantity.text for key, quantity in bounds.items() if quantity is not None
        }
    return shown


def consumed_capacity(
    capacity: Capacity, quantity: quantities.Quantity | None
) -> quantities.Quantity | None:
    """Return what a request consumes, rounded up by the policy; None if it forbids the amount.

    A request that names no amount takes the policy's default, and without a policy all there is.
    """
    policy = capacity.policy
    if quantity is None:
        return capacity.value if policy is None else policy.default
    if policy is None:
        return quantity
    if policy.range is not None:
        return _in_range(policy.range, quantity)
    if policy.values:
        return next((value for value in policy.values if quantity <= value), None)
    return quantity


def _in_range(span: Range, quantity: quantities.Quantity) -> quantities.Quantity | None:
    result = quantity
    if quantity <= span.minimum:
        result = span.minimum
    elif span.step is not None:
        steps = -(-(quantity.nanos - span.minimum.nanos) // span.step.nanos)
        result = quantities.format_like(span.minimum.nanos + steps * span.step.nanos, span.step)
    return None if span.maximum is not None and span.maximum < result else result


def round_up_to_step(total: int, share: int, step: int, base: Unit) -> Capacity:
    """A capacity that is given out in steps, `share` of it to a request that names no amount.

    Amounts are whole units. `share` is rounded down to a step, and one step at least; what is left
    of `total` beyond the last step is nobody's. Where there is but one step, it is the only amount.
    """
    default = max(step, share // step * step)
    most = max(step, total // step * step)
    if most == step:
        return Capacity(base(max(total, step)), RequestPolicy(base(step), (base(step),)))
    span = Range(base(step), base(most), base(step))
    return Capacity(base(total), RequestPolicy(base(default), range=span))
