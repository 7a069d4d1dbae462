"""Documents that hold a configuration: ConfigMap, Helm values, ClusterPolicy, DaemonSet."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from driver.cli.migrate.settings import Finding, SettingFate
from driver.resources import fields

_FLAGS: Mapping[str, str] = {
    "MIG_STRATEGY": "flags.migStrategy",
    "FAIL_ON_INIT_ERROR": "flags.failOnInitError",
    "MPS_ROOT": "flags.mpsRoot",
    "NVIDIA_DRIVER_ROOT": "flags.nvidiaDriverRoot",
    "NVIDIA_DEV_ROOT": "flags.nvidiaDevRoot",
    "GDRCOPY_ENABLED": "flags.gdrcopyEnabled",
    "GDS_ENABLED": "flags.gdsEnabled",
    "MOFED_ENABLED": "flags.mofedEnabled",
    "USE_NODE_FEATURE_API": "flags.useNodeFeatureAPI",
    "DEVICE_DISCOVERY_STRATEGY": "flags.deviceDiscoveryStrategy",
    "PASS_DEVICE_SPECS": "flags.plugin.passDeviceSpecs",
    "DEVICE_LIST_STRATEGY": "flags.plugin.deviceListStrategy",
    "DEVICE_ID_STRATEGY": "flags.plugin.deviceIDStrategy",
    "CDI_ANNOTATION_PREFIX": "flags.plugin.cdiAnnotationPrefix",
    "NVIDIA_CTK_PATH": "flags.plugin.nvidiaCTKPath",
    "CONTAINER_DRIVER_ROOT": "flags.plugin.containerDriverRoot",
    "SHARED_DEVICES_ALLOCATION_POLICY": "flags.plugin.sharedDevicesAllocationPolicy",
}
"""Environment of the device plugin; its flags are these in lower case with dashes."""
_VALUES: Mapping[str, str] = {
    "migStrategy": "flags.migStrategy",
    "failOnInitError": "flags.failOnInitError",
    "compatWithCPUManager": "flags.plugin.passDeviceSpecs",
    "deviceListStrategy": "flags.plugin.deviceListStrategy",
    "deviceIDStrategy": "flags.plugin.deviceIDStrategy",
    "nvidiaDriverRoot": "flags.nvidiaDriverRoot",
    "gdrcopyEnabled": "flags.gdrcopyEnabled",
    "gdsEnabled": "flags.gdsEnabled",
    "mofedEnabled": "flags.mofedEnabled",
    "deviceDiscoveryStrategy": "flags.deviceDiscoveryStrategy",
}
"""Values of the device plugin's chart that go before every configuration."""
_HEALTH = frozenset({"DP_DISABLE_HEALTHCHECKS", "DP_ENABLE_HEALTHCHECKS"})
_PODS = "is about the old pods, not about GPUs"
_SAYS = "says what the device plugin reads"
_MIG_FLAG = "flags.migStrategy"
_METADATA = frozenset({"apiVersion", "kind", "metadata", "status"})


@dataclass(frozen=True, slots=True)
class ConfigPart:
    """Contents of one document.

    `texts` are configurations by name, each with its place; `bare` is one without a name, at
    `where`.
    """

    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    bare: Mapping[str, object] | None = None
    where: str = ""
    overrides: Mapping[str, object] = field(default_factory=dict)
    default: str = ""
    operator: bool = False
    configmap: str = ""
    elsewhere: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()


def parse_configmap(document: fields.Raw, location: str) -> ConfigPart:
    """Named configurations, one a key."""
    name = fields.text(fields.mapping(document, "metadata", location), "name", location)
    path = f"{location}: ConfigMap {name}"
    data = fields.text_map(document, "data", path)
    other = [key for key in document if key not in _METADATA | {"data", "immutable"}]
    return ConfigPart(
        texts={key: (text, f"{path}: data.{key}") for key, text in data.items()},
        configmap=name,
        notes=tuple(
            Finding(key, document[key], SettingFate.UNKNOWN, "the device plugin reads data only")
            for key in other
        ),
    )


def parse_policy(document: fields.Raw, path: str) -> ConfigPart:
    """The GPU operator's ClusterPolicy: as its values."""
    return _of_operator(fields.mapping(document, "spec", path), path, "spec.")


def parse_values(document: fields.Raw, path: str) -> ConfigPart | None:
    """Helm values of the device plugin's chart or of the GPU operator; None for anything else."""
    plugin = document.get("devicePlugin")
    if "mig" in document or (isinstance(plugin, Mapping) and "config" in plugin):
        return _of_operator(document, path, "")
    if not {"config", *_VALUES} & set(document):
        return None
    config = fields.mapping(document, "config", path)
    texts = fields.text_map(config, "map", f"{path}: config")
    overrides = {
        _VALUES[key]: value
        for key, value in document.items()
        if key in _VALUES and value is not None
    }
    used = {"config.map", "config.default", "config.name", *_VALUES}
    return ConfigPart(
        texts={key: (text, f"{path}: config.map.{key}") for key, text in texts.items()},
        overrides=overrides,
        default=fields.text(config, "default", path),
        elsewhere=_named(config, path),
        notes=tuple(_notes(document, used)),
    )


def _of_operator(values: fields.Raw, location: str, prefix: str) -> ConfigPart:
    config = fields.mapping(fields.mapping(values, "devicePlugin", location), "config", location)
    texts = fields.text_map(config, "data", f"{location}: devicePlugin.config")
    strategy = fields.mapping(values, "mig", location).get("strategy")
    path = "devicePlugin.config"
    used = {f"{path}.name", f"{path}.default", f"{path}.data", f"{path}.create", "mig.strategy"}
    operator = bool(config.get("create"))
    return ConfigPart(
        texts={key: (text, f"{location}: {path}.data.{key}") for key, text in texts.items()},
        overrides={} if strategy is None else {_MIG_FLAG: strategy},
        default=fields.text(config, "default", location),
        operator=True,
        elsewhere=() if operator else _named(config, location),
        notes=tuple(_notes(values, used, prefix)),
    )


def parse_daemonset(document: fields.Raw, location: str) -> ConfigPart:
    """The device plugin as it runs: its flags and environment."""
    template = fields.mapping(fields.mapping(document, "spec", location), "template", location)
    overrides: dict[str, object] = {}
    notes: list[Finding] = []
    default = ""
    for field_path, container in fields.objects(
        fields.mapping(template, "spec", location), "containers"
    ):
        for path, name, text in _said(container, field_path):
            value = _value(text)
            if name in _FLAGS:
                overrides[_FLAGS[name]] = value
                notes.append(Finding(path, text, SettingFate.USED, f"goes before {_FLAGS[name]}"))
            elif name == "DEFAULT_CONFIG":
                default = text
                notes.append(
                    Finding(path, text, SettingFate.USED, "the configuration of other nodes")
                )
            elif name in _HEALTH:
                why = "kubeletPlugin.xidClass says how an Xid is judged"
                notes.append(Finding(path, text, SettingFate.CHANGED, why))
            else:
                notes.append(Finding(path, text, SettingFate.DROPPED, _PODS))
    return ConfigPart(overrides=overrides, default=default, notes=tuple(notes))


def _said(container: fields.Raw, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield path, environment name and text; flags last, as they win."""
    for location, item in fields.objects(container, "env", path):
        name = fields.text(item, "name", location)
        yield f"{location}.{name}", name, str(item.get("value", ""))
    words = (*fields.texts(container, "command", path), *fields.texts(container, "args", path))
    for word in words:
        if word.startswith("--"):
            flag, equals, text = word.removeprefix("--").partition("=")
            yield f"{path}.{flag}", flag.upper().replace("-", "_"), text if equals else "true"


def _value(text: str) -> object:
    return {"true": True, "false": False}.get(text, text)


def _named(config: fields.Raw, path: str) -> tuple[str, ...]:
    name = fields.text(config, "name", path)
    return (name,) if name else ()


def _notes(document: fields.Raw, used: set[str], prefix: str = "") -> Iterator[Finding]:
    for path, value in _leaves(document, "", used):
        if path in used:
            flag = _VALUES.get(path) or (_MIG_FLAG if path == "mig.strategy" else "")
            message = f"goes before {flag} of every configuration" if flag else _SAYS
            yield Finding(prefix + path, value, SettingFate.USED, message)
        else:
            yield Finding(prefix + path, value, SettingFate.DROPPED, _PODS)


def _leaves(document: fields.Raw, field_path: str, used: set[str]) -> Iterator[tuple[str, object]]:
    """Settings that are used, and the others as high up as they can be named."""
    for key, value in document.items():
        path = f"{field_path}.{key}" if field_path else str(key)
        inner = path not in used and any(item.startswith(f"{path}.") for item in used)
        if inner and isinstance(value, Mapping):
            yield from _leaves(value, path, used)
        else:
            yield path, value


KINDS: Mapping[str, Callable[[fields.Raw, str], ConfigPart]] = {
    "ConfigMap": parse_configmap,
    "ClusterPolicy": parse_policy,
    "DaemonSet": parse_daemonset,
}
