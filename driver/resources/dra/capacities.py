"""Capacities of a device, and how much of one a request may take (KEP-5075). Both ways."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from driver.resources import fields, quantities
from driver.resources.dra import interning

Raw = dict[str, object]
Unit = Callable[[int], quantities.Quantity]
"""How an amount is written: `quantity.of_bytes` or `quantity.of_units`."""


@dataclass(frozen=True, slots=True)
class Range:
    """`validRange`: from `minimum`, in steps, at most `maximum`; None where there is no bound."""

    minimum: quantities.Quantity
    maximum: quantities.Quantity | None = None
    step: quantities.Quantity | None = None


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """What a request takes when it names no amount, and which amounts it may name.

    At most one of `values` and `range` is there; with neither, any amount will do.
    """

    default: quantities.Quantity
    values: tuple[quantities.Quantity, ...] = ()
    range: Range | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """An amount; without a policy, and on a device that is not shared, it is used whole."""

    value: quantities.Quantity
    policy: RequestPolicy | None = None


def parse_all(obj: fields.Raw, at: str) -> Mapping[str, Capacity]:
    """Read the capacities of a device; equal ones are one object. Raises BadInput."""
    return _shared(obj, at)


def _parse_all(obj: fields.Raw, at: str) -> Mapping[str, Capacity]:
    return {key: parse(fields.mapping(obj, key, at), f"{at}[{key}]") for key in obj}


_shared = interning.interning_reader(_parse_all)


def parse(obj: fields.Raw, at: str) -> Capacity:
    """Read one capacity. Raises BadInput."""
    policy = obj.get("requestPolicy")
    return Capacity(
        quantities.parse(obj.get("value"), f"{at}.value"),
        _parse_policy(fields.mapping(obj, "requestPolicy", at), f"{at}.requestPolicy")
        if policy
        else None,
    )


def _parse_policy(obj: fields.Raw, at: str) -> RequestPolicy:
    span = fields.mapping(obj, "validRange", at)
    return RequestPolicy(
        default=quantities.parse(obj.get("default"), f"{at}.default"),
        values=tuple(
            quantities.parse(value, f"{at}.validValues")
            for value in fields.sequence(obj, "validValues", at)
        ),
        range=_parse_range(span, f"{at}.validRange") if span else None,
    )


def _parse_range(obj: fields.Raw, at: str) -> Range:
    maximum, step = obj.get("max"), obj.get("step")
    return Range(
        quantities.parse(obj.get("min"), f"{at}.min"),
        None if maximum is None else quantities.parse(maximum, f"{at}.max"),
        None if step is None else quantities.parse(step, f"{at}.step"),
    )


def render(capacity: Capacity) -> Raw:
    """As the API writes it."""
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
        shown["validRange"] = {key: one.text for key, one in bounds.items() if one is not None}
    return shown


def consumed_capacity(
    capacity: Capacity, asked: quantities.Quantity | None
) -> quantities.Quantity | None:
    """What a request takes of a capacity, rounded up by its policy; None where that forbids it.

    One that names no amount takes the policy's default, and without a policy all there is.
    """
    policy = capacity.policy
    if asked is None:
        return capacity.value if policy is None else policy.default
    if policy is None:
        return asked
    if policy.range is not None:
        return _in_range(policy.range, asked)
    if policy.values:
        return next((value for value in policy.values if asked <= value), None)
    return asked


def _in_range(span: Range, asked: quantities.Quantity) -> quantities.Quantity | None:
    found = asked
    if asked <= span.minimum:
        found = span.minimum
    elif span.step is not None:
        steps = -(-(asked.nanos - span.minimum.nanos) // span.step.nanos)
        found = quantities.format_like(span.minimum.nanos + steps * span.step.nanos, span.step)
    return None if span.maximum is not None and span.maximum < found else found


def round_up_to_step(total: int, share: int, step: int, of: Unit) -> Capacity:
    """A capacity that is given out in steps, `share` of it to a request that names no amount.

    Amounts are whole units. `share` is rounded down to a step, and one step at least; what is left
    of `total` beyond the last step is nobody's. Where there is but one step, it is the only amount.
    """
    default = max(step, share // step * step)
    most = max(step, total // step * step)
    if most == step:
        return Capacity(of(max(total, step)), RequestPolicy(of(step), (of(step),)))
    span = Range(of(step), of(most), of(step))
    return Capacity(of(total), RequestPolicy(of(default), range=span))
