"""DeviceClasses: selectors and default configuration by name."""

from dataclasses import dataclass

from driver import errors, names
from driver.resources import fields


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A class. `configs` are the opaque parts as read: allocations copy them unchanged.

    `policies` are the placement policies that its operator orders; None: the controller's.
    `extended_resource` is the resource by which pods may request it without a claim; "" without.
    """

    name: str
    selectors: tuple[str, ...]
    configs: tuple[fields.Raw, ...] = ()
    policies: str | None = None
    extended_resource: str = ""
    created: str = ""


def parse(obj: fields.Raw) -> DeviceClass:
    """Read a DeviceClass."""
    spec, meta = fields.mapping(obj, "spec"), fields.mapping(obj, "metadata")
    return DeviceClass(
        name=fields.required_text(meta, "name", "metadata"),
        selectors=expressions(spec, "spec"),
        configs=tuple(
            _opaque(config, path) for path, config in fields.objects(spec, "config", "spec")
        ),
        policies=policies(obj),
        extended_resource=fields.text(spec, "extendedResourceName", "spec"),
        created=fields.text(meta, "creationTimestamp", "metadata"),
    )


def _opaque(config: fields.Raw, path: str) -> fields.Raw:
    if fields.is_deep(config):
        expected = f"at most {fields.MOST_NESTED} levels"
        raise errors.BadInput(f"{path}.opaque", "is nested too deeply", expected)
    return fields.mapping(config, "opaque", path)


def policies(obj: fields.Raw) -> str | None:
    """The placement policies that a DeviceClass orders, as its annotation says them."""
    meta = fields.mapping(obj, "metadata")
    return fields.text_map(meta, "annotations", "metadata").get(names.POLICIES_ANNOTATION)


def expressions(obj: fields.Raw, location: str) -> tuple[str, ...]:
    """The CEL expressions of a `selectors` list."""
    return tuple(
        fields.required_text(fields.mapping(item, "cel", path), "expression", f"{path}.cel")
        for path, item in fields.objects(obj, "selectors", location)
    )
