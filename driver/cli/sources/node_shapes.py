"""The kinds of node that can be asked for, by the ConfigMaps of the release, where they are shown.

One is of the chart, with the document; the other the controller's, with what it has learned.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from driver import errors
from driver.api import node_shapes
from driver.kube import client, gvr
from driver.resources import fields
from driver.runtime.files import yaml_files
from driver.scheduling.provisioning import observed_shapes, shape_status

Raw = Mapping[str, Any]
NAMES = ("ration-controller-node-shapes", "ration-controller-node-shapes-seen")
_KIND, _KEY_END = "NodeShapes", ".json.gz"


def list_documents(kube: client.KubeClient, namespace: str) -> Sequence[Raw]:
    """The ConfigMaps, as far as they are there. Raises ApiError."""
    result: list[Raw] = []
    for name in NAMES:
        try:
            item = kube.get(gvr.CONFIG_MAPS, name, namespace)
        except errors.NotFound:
            continue
        result.append({"apiVersion": "v1", "kind": "ConfigMap", **item})
    return result


def parse_documents(
    current: Iterable[Raw], driver: str, problems: list[str]
) -> shape_status.ShapeStatus | None:
    """Parse the ConfigMaps among objects; None if none has a document."""
    maps = [map_ for map_ in current if map_.get("kind") == "ConfigMap"]
    for map_ in maps:
        namespace = fields.text(fields.mapping(map_, "metadata"), "namespace")
        for path, text in fields.mapping(map_, "data").items():
            document = _document(str(text))
            if document is None:
                continue
            try:
                shapes = node_shapes.read(document, path)
            except errors.BadInput as error:
                problems.append(str(error))
                continue
            return shape_status.build_status(shapes, dict(_seen(maps, problems)), namespace, driver)
    return None


def _document(text: str) -> Mapping[str, object] | None:
    """Return the document in a text; None for something else."""
    if _KIND not in text:
        return None
    try:
        result = yaml_files.parse_document(text, "data", _KIND)
    except errors.BadInput:
        return None
    return result if result.get("kind") == _KIND else None


def _seen(
    maps: Iterable[Raw], problems: list[str]
) -> Iterator[tuple[str, observed_shapes.ObservedShape]]:
    for map_ in maps:
        if fields.text(fields.mapping(map_, "metadata"), "name") != NAMES[1]:
            continue
        for key, text in fields.mapping(map_, "binaryData").items():
            try:
                yield (
                    key.removesuffix(_KEY_END),
                    observed_shapes.decode(
                        base64.b64decode(str(text)), f"ConfigMap {NAMES[1]}, {key}"
                    ),
                )
            except (errors.BadInput, ValueError) as error:
                problems.append(str(error))
