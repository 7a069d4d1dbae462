"""Files as YAML or JSON documents, as Kubernetes reads them: keys are texts, and so are dates."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from driver import errors

STDIN = "-"
_ENDINGS = (".yaml", ".yml", ".json")
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.CSafeLoader):
    """Refuses a key that stands twice: one of the two would be dropped silently."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - yaml's own way to say so
        first: [one for one in found if one[0] != _TIMESTAMP]
        for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def _unique(loader: _Loader, node: yaml.MappingNode) -> dict[str, object]:
    seen: set[str] = set()
    for key_node, _ in node.value:
        key = _text(loader.construct_object(key_node, deep=True))
        if key in seen:
            raise errors.BadInput(f"line {key_node.start_mark.line + 1}", f"{key} stands twice")
        seen.add(key)
    loader.flatten_mapping(node)
    return {
        _text(loader.construct_object(key, deep=True)): loader.construct_object(value, deep=True)
        for key, value in node.value
    }


def _text(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique)


def load(text: str, path: str) -> list[Any]:
    """The YAML (or JSON) documents of a text, empty ones left out.

    Raises:
        BadInput: it is none, or a key stands twice; it names `path` and the line.
    """
    try:
        # JSON is YAML, and read a hundred times as fast for itself.
        return [json.loads(text)]
    except (ValueError, RecursionError):
        pass
    try:
        return [item for item in yaml.load_all(text, _Loader) if item is not None]
    except errors.BadInput as error:
        raise errors.BadInput(f"{path} {error.location}", error.problem) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f" line {mark.line + 1}" if mark else ""
        problem = ", ".join(filter(None, (error.context, error.problem)))
        raise errors.BadInput(f"{path}{line}", f"is no YAML: {problem}") from error
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        problem = f"is no YAML: {' '.join(str(error).split())}"
        raise errors.BadInput(path, problem) from error


def read(path: str) -> list[Any]:
    """The documents of a file, of the YAML and JSON files of a folder, or of standard input, `-`.

    Raises:
        BadInput: it cannot be read, is no YAML or JSON, or holds nothing.
    """
    return _some([item for _, result in read_files(path) for item in result], path)


def read_files(path: str) -> list[tuple[str, list[Any]]]:
    """Return display name and documents of each file. Raises BadInput."""
    return [(name, load(text, name)) for name, text in _texts(path)]


def parse(text: str, path: str) -> list[Any]:
    """The documents of a text. Raises BadInput where there is none."""
    return _some(load(text, path), path)


def _some(result: list[Any], path: str) -> list[Any]:
    if not result:
        raise errors.BadInput(path, "is empty", "Kubernetes objects, as YAML or JSON")
    return result


def display_name(path: str) -> str:
    """Return the name of a path in messages."""
    return "standard input" if path == STDIN else path


def read_text(path: str) -> str:
    """Return the text of a file, or of standard input. Raises BadInput."""
    try:
        if path == STDIN:
            return sys.stdin.read()
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise errors.BadInput(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise errors.BadInput(path, "is no text", "YAML or JSON in UTF-8") from error


def _texts(path: str) -> Iterator[tuple[str, str]]:
    if path != STDIN and Path(path).is_dir():
        for item in sorted(Path(path).iterdir()):
            if item.suffix in _ENDINGS and item.is_file():
                yield str(item), read_text(str(item))
        return
    yield display_name(path), read_text(path)
