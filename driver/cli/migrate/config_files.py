"""Finding the device plugin's configurations in the files that people have.

ConfigMap (a List of them)     named configurations, one a key
a configuration itself         version: v1, flags, sharing
values of NVIDIA's chart       config.map, config.default, migStrategy and the like
values of the GPU operator     devicePlugin.config, mig.strategy; ClusterPolicy likewise
a DaemonSet                    flags and environment, which go before every file
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import yaml

from driver import errors
from driver.cli.migrate import sources
from driver.cli.migrate.settings import Finding

_OWN = frozenset({"version", "flags", "sharing"})
"""Keys that only a configuration has; `resources` is a value of charts too."""
_BARE = _OWN | {"resources", "imex"}
_EXPECTED = "a ConfigMap, a configuration, Helm values, a ClusterPolicy or a DaemonSet"
_MIG_PARTED = "mig-configs"
BARE_NAME = "config"
"""The name of a configuration that comes without one: the chart's own key for it."""


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """Contents of the files: configurations by name, before `overrides`, which apply to each.

    `missing`: ConfigMaps that are named and were not given.
    """

    configs: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    overrides: Mapping[str, object] = field(default_factory=dict)
    default: str = ""
    operator: bool = False
    missing: tuple[str, ...] = ()
    notes: tuple[Finding, ...] = ()

    def body(self, name: str) -> Mapping[str, object]:
        """A configuration with the overrides in it; the device plugin's defaults for ""."""
        merged: dict[str, object] = copy.deepcopy(dict(self.configs.get(name, {})))
        for path, value in self.overrides.items():
            *tables, key = path.split(".")
            table = merged
            for item in tables:
                inner = table.get(item)
                inner = inner if isinstance(inner, dict) else {}
                table[item] = inner
                table = inner
            table[key] = value
        return merged


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice: one of the two would be dropped silently."""


def _unique(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    seen: set[object] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            line = key_node.start_mark.line + 1
            raise errors.BadInput(f"line {line}", f"{key} stands twice")
        seen.add(key)
    return dict(loader.construct_mapping(node, deep=True))


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique)


def load(text: str, path: str) -> list[object]:
    """The YAML (or JSON) documents of a text.

    Raises:
        BadInput: it is none, or a key stands twice.
    """
    try:
        return [item for item in yaml.load_all(text, _Loader) if item is not None]
    except errors.BadInput as error:
        raise errors.BadInput(f"{path}: {error.location}", error.problem) from error
    except (yaml.YAMLError, TypeError, ValueError) as error:
        raise errors.BadInput(path, f"is no YAML: {' '.join(str(error).split())}") from error


def read_configs(files: Mapping[str, str]) -> ConfigFiles:
    """Read files, texts by name.

    Raises:
        BadInput: a document does not configure the device plugin.
    """
    parts = [part for path, text in files.items() for part in _parts(text, path)]
    if not parts:
        raise errors.BadInput(", ".join(files), "is empty", _EXPECTED)
    configs: dict[str, Mapping[str, object]] = {}
    for part in parts:
        for name, path, body in _named(part):
            if name in configs:
                raise errors.BadInput(path, f"there is another configuration {name}")
            configs[name] = body
    named = {name for part in parts for name in part.elsewhere}
    granted = {part.configmap for part in parts}
    return ConfigFiles(
        configs=configs,
        overrides={k: v for part in parts for k, v in part.overrides.items()},
        default=next((part.default for part in reversed(parts) if part.default), ""),
        operator=any(part.operator for part in parts),
        missing=tuple(sorted(named - granted)),
        notes=tuple(note for part in parts for note in part.notes),
    )


def _named(part: sources.ConfigPart) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    for name, (text, path) in part.texts.items():
        yield name, path, _one(text, path)
    if part.bare is not None:
        yield BARE_NAME, part.where, part.bare


def _parts(text: str, path: str) -> Iterator[sources.ConfigPart]:
    for document in load(text, path):
        yield from _of(document, path)


def _of(document: object, path: str) -> Iterable[sources.ConfigPart]:
    if not isinstance(document, Mapping):
        raise errors.BadInput(path, f"is {type(document).__name__}", _EXPECTED)
    kind = document.get("kind")
    if kind in {"List", "ConfigMapList"}:
        return [part for item in document.get("items") or () for part in _of(item, path)]
    reader = sources.KINDS.get(str(kind))
    if reader is not None:
        return [reader(document, path)]
    if kind is not None:
        raise errors.BadInput(path, f"is a {kind}", _EXPECTED)
    if not document or _OWN & set(document):
        return [sources.ConfigPart(bare=_configuration(document, path), where=path)]
    config_part = sources.parse_values(document, path)
    if config_part is None and not _BARE & set(document):
        raise errors.BadInput(path, "says nothing that is known", _EXPECTED)
    return [config_part or sources.ConfigPart(bare=document, where=path)]


def _one(text: str, path: str) -> Mapping[str, object]:
    documents = load(text, path)
    if not documents:
        return {}
    if len(documents) > 1 or not isinstance(documents[0], dict):
        raise errors.BadInput(path, "is not one configuration", "version: v1, flags, sharing")
    return _configuration(documents[0], path)


def _configuration(body: Mapping[str, object], path: str) -> Mapping[str, object]:
    if _MIG_PARTED in body:
        problem = f"has {_MIG_PARTED}, which the MIG manager reads, not the device plugin"
        raise errors.BadInput(path, problem, "it left out: instances that exist are offered")
    return body
