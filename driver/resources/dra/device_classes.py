"""DeviceClasses: selectors and default configuration by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from driver import errors, names
from driver.resources import fields


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A class. `configs` are the opaque parts as read: allocations copy them unchanged.

    `policies` are the placement policies that its operator orders; None: the controller's.
    `extended_resource` is the resource by which pods may request it without a claim; "" without.
    `is_converted`: pods that request its extended resources are converted to pods with claims.
    """

    name: str
    selectors: tuple[str, ...]
    configs: tuple[fields.Raw, ...] = ()
    policies: str | None = None
    extended_resource: str = ""
    created: str = ""
    is_converted: bool = False


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
        is_converted=convert_label(obj) == "true",
    )


def classes_by_resource(classes: Iterable[DeviceClass]) -> Mapping[str, DeviceClass]:
    """Return the DeviceClass of each extended resource, as kube-scheduler chooses it.

    Each class has the resource of its own name; of several classes with one
    `extendedResourceName`, the newest has it, then the first by name.
    """
    by_name = sorted(classes, key=lambda device_class: device_class.name, reverse=True)
    by_age = sorted(by_name, key=lambda device_class: device_class.created)
    return {
        resource: device_class
        for device_class in by_age
        for resource in (
            names.CLASS_RESOURCE_PREFIX + device_class.name,
            device_class.extended_resource,
        )
        if resource
    }


def converted_resources(classes: Iterable[DeviceClass]) -> Mapping[str, str]:
    """Return the extended resources that are converted to claims, each with its DeviceClass.

    A resource that kube-scheduler would allocate by a class without the label is not converted.
    """
    return {
        resource: device_class.name
        for resource, device_class in classes_by_resource(classes).items()
        if device_class.is_converted
    }


def _opaque(config: fields.Raw, path: str) -> fields.Raw:
    if fields.is_deep(config):
        expected = f"at most {fields.MOST_NESTED} levels"
        raise errors.BadInput(f"{path}.opaque", "is nested too deeply", expected)
    return fields.mapping(config, "opaque", path)


def policies(obj: fields.Raw) -> str | None:
    """The placement policies that a DeviceClass orders, as its annotation says them."""
    meta = fields.mapping(obj, "metadata")
    return fields.text_map(meta, "annotations", "metadata").get(names.POLICIES_ANNOTATION)


def convert_label(obj: fields.Raw) -> str | None:
    """Return the value of the label that converts requests for a DeviceClass; None without it."""
    meta = fields.mapping(obj, "metadata")
    return fields.text_map(meta, "labels", "metadata").get(names.CONVERT_LABEL)


def expressions(obj: fields.Raw, location: str) -> tuple[str, ...]:
    """The CEL expressions of a `selectors` list."""
    return tuple(
        fields.required_text(fields.mapping(item, "cel", path), "expression", f"{path}.cel")
        for path, item in fields.objects(obj, "selectors", location)
    )
