"""What a configuration stands in: ConfigMap, Helm values, ClusterPolicy, DaemonSet."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from driver.cli.migrate.findings import Fate, Finding
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
class Part:
    """What one document says.

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


def of_configmap(document: fields.Raw, where: str) -> Part:
    """Named configurations, one a key."""
    name = fields.text(fields.mapping(document, "metadata", where), "name", where)
    at = f"{where}: ConfigMap {name}"
    data = fields.text_map(document, "data", at)
    other = [key for key in document if key not in _METADATA | {"data", "immutable"}]
    return Part(
        texts={key: (text, f"{at}: data.{key}") for key, text in data.items()},
        configmap=name,
        notes=tuple(
            Finding(key, document[key], Fate.UNKNOWN, "the device plugin reads data only")
            for key in other
        ),
    )


def of_policy(document: fields.Raw, where: str) -> Part:
    """The GPU operator's ClusterPolicy: as its values."""
    return _of_operator(fields.mapping(document, "spec", where), where, "spec.")


def of_values(document: fields.Raw, where: str) -> Part | None:
    """Helm values of the device plugin's chart or of the GPU operator; None for anything else."""
    plugin = document.get("devicePlugin")
    if "mig" in document or (isinstance(plugin, Mapping) and "config" in plugin):
        return _of_operator(document, where, "")
    if not {"config", *_VALUES} & set(document):
        return None
    config = fields.mapping(document, "config", where)
    texts = fields.text_map(config, "map", f"{where}: config")
    overrides = {
        _VALUES[key]: value
        for key, value in document.items()
        if key in _VALUES and value is not None
    }
    used = {"config.map", "config.default", "config.name", *_VALUES}
    return Part(
        texts={key: (text, f"{where}: config.map.{key}") for key, text in texts.items()},
        overrides=overrides,
        default=fields.text(config, "default", where),
        elsewhere=_named(config, where),
        notes=tuple(_notes(document, used)),
    )


def _of_operator(values: fields.Raw, where: str, prefix: str) -> Part:
    config = fields.mapping(fields.mapping(values, "devicePlugin", where), "config", where)
    texts = fields.text_map(config, "data", f"{where}: devicePlugin.config")
    strategy = fields.mapping(values, "mig", where).get("strategy")
    at = "devicePlugin.config"
    used = {f"{at}.name", f"{at}.default", f"{at}.data", f"{at}.create", "mig.strategy"}
    made = bool(config.get("create"))
    return Part(
        texts={key: (text, f"{where}: {at}.data.{key}") for key, text in texts.items()},
        overrides={} if strategy is None else {_MIG_FLAG: strategy},
        default=fields.text(config, "default", where),
        operator=True,
        elsewhere=() if made else _named(config, where),
        notes=tuple(_notes(values, used, prefix)),
    )


def of_daemonset(document: fields.Raw, where: str) -> Part:
    """The device plugin as it runs: its flags and environment."""
    template = fields.mapping(fields.mapping(document, "spec", where), "template", where)
    overrides: dict[str, object] = {}
    notes: list[Finding] = []
    default = ""
    for at, container in fields.objects(fields.mapping(template, "spec", where), "containers"):
        for path, name, text in _said(container, at):
            value = _value(text)
            if name in _FLAGS:
                overrides[_FLAGS[name]] = value
                notes.append(Finding(path, text, Fate.USED, f"goes before {_FLAGS[name]}"))
            elif name == "DEFAULT_CONFIG":
                default = text
                notes.append(Finding(path, text, Fate.USED, "the configuration of other nodes"))
            elif name in _HEALTH:
                why = "kubeletPlugin.xidClass says how an Xid is judged"
                notes.append(Finding(path, text, Fate.CHANGED, why))
            else:
                notes.append(Finding(path, text, Fate.DROPPED, _PODS))
    return Part(overrides=overrides, default=default, notes=tuple(notes))


def _said(container: fields.Raw, at: str) -> Iterator[tuple[str, str, str]]:
    """Place, name as in the environment, and text; flags last, as they win."""
    for where, one in fields.objects(container, "env", at):
        name = fields.text(one, "name", where)
        yield f"{where}.{name}", name, str(one.get("value", ""))
    words = (*fields.texts(container, "command", at), *fields.texts(container, "args", at))
    for word in words:
        if word.startswith("--"):
            flag, equals, text = word.removeprefix("--").partition("=")
            yield f"{at}.{flag}", flag.upper().replace("-", "_"), text if equals else "true"


def _value(text: str) -> object:
    return {"true": True, "false": False}.get(text, text)


def _named(config: fields.Raw, where: str) -> tuple[str, ...]:
    name = fields.text(config, "name", where)
    return (name,) if name else ()


def _notes(document: fields.Raw, used: set[str], prefix: str = "") -> Iterator[Finding]:
    for path, value in _leaves(document, "", used):
        if path in used:
            flag = _VALUES.get(path) or (_MIG_FLAG if path == "mig.strategy" else "")
            said = f"goes before {flag} of every configuration" if flag else _SAYS
            yield Finding(prefix + path, value, Fate.USED, said)
        else:
            yield Finding(prefix + path, value, Fate.DROPPED, _PODS)


def _leaves(document: fields.Raw, at: str, used: set[str]) -> Iterator[tuple[str, object]]:
    """Settings that are used, and the others as high up as they can be named."""
    for key, value in document.items():
        path = f"{at}.{key}" if at else str(key)
        inner = path not in used and any(one.startswith(f"{path}.") for one in used)
        if inner and isinstance(value, Mapping):
            yield from _leaves(value, path, used)
        else:
            yield path, value


KINDS: Mapping[str, Callable[[fields.Raw, str], Part]] = {
    "ConfigMap": of_configmap,
    "ClusterPolicy": of_policy,
    "DaemonSet": of_daemonset,
}
