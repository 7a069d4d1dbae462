"""DeviceClasses: selectors and default configuration by name."""

from dataclasses import dataclass

from driver.resources import fields


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A class. `configs` are the opaque parts as read: allocations copy them unchanged."""

    name: str
    selectors: tuple[str, ...]
    configs: tuple[fields.Raw, ...] = ()


def parse(obj: fields.Raw) -> DeviceClass:
    """Read a DeviceClass."""
    spec = fields.mapping(obj, "spec")
    return DeviceClass(
        name=fields.required_text(fields.mapping(obj, "metadata"), "name", "metadata"),
        selectors=expressions(spec, "spec"),
        configs=tuple(
            fields.mapping(config, "opaque", at)
            for at, config in fields.objects(spec, "config", "spec")
        ),
    )


def expressions(obj: fields.Raw, where: str) -> tuple[str, ...]:
    """The CEL expressions of a `selectors` list."""
    return tuple(
        fields.required_text(fields.mapping(one, "cel", at), "expression", f"{at}.cel")
        for at, one in fields.objects(obj, "selectors", where)
    )
