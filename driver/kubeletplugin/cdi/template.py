"""A claim's CDI spec as text: static words, every value through `tojson`. Pure.

What comes out is not trusted: `model.parse` reads it back and checks it (D12).
"""

from dataclasses import dataclass

import jinja2

from driver.kubeletplugin.host import device_node

_TEMPLATE = """\
{%- macro nodes(all) -%}
[{% for node in all %}{
  "path": {{ node.path | tojson }},
  {% if node.host_path != node.path %}"hostPath": {{ node.host_path | tojson }},{% endif %}
  "type": "c",
  "major": {{ node.major | tojson }},
  "minor": {{ node.minor | tojson }},
  "permissions": "rw"
}{{ "" if loop.last else "," }}{% endfor %}]
{%- endmacro -%}
{%- macro mounts(all) -%}
[{% for mount in all %}{
  "hostPath": {{ mount.host_path | tojson }},
  "containerPath": {{ mount.container_path | tojson }},
  "options": {{ mount.options | tojson }}
}{{ "" if loop.last else "," }}{% endfor %}]
{%- endmacro -%}
{%- macro hooks(all) -%}
[{% for hook in all %}{
  "hookName": "createContainer",
  "path": {{ hook.path | tojson }},
  "args": {{ hook.arguments | tojson }},
  "env": ["NVIDIA_CTK_DEBUG=false"]
}{{ "" if loop.last else "," }}{% endfor %}]
{%- endmacro -%}
{
  "cdiVersion": "0.3.0",
  "kind": {{ kind | tojson }},
  "containerEdits": {
    "env": {{ (("NVIDIA_VISIBLE_DEVICES=void",) + common.environment) | tojson }},
    "deviceNodes": {{ nodes(common.nodes) }},
    "mounts": {{ mounts(common.mounts) }},
    "hooks": {{ hooks(common.hooks) }}
  },
  "devices": [{% for device in devices %}{
    "name": {{ device.name | tojson }},
    "containerEdits": {
      "env": {{ device.environment | tojson }},
      "deviceNodes": {{ nodes(device.nodes) }},
      "mounts": {{ mounts(device.mounts) }}
    }
  }{{ "" if loop.last else "," }}{% endfor %}]
}
"""


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of the host, at a place in the container."""

    host_path: str
    container_path: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hook:
    """What the runtime runs on the host before a container starts; the first argument is its name.

    It runs as root in the container's mount namespace.
    """

    path: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Common:
    """What every device of the spec brings along; `environment` is of `NAME=value`."""

    nodes: tuple[device_node.DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    environment: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """One device: its name in the spec, its own nodes, and what it tells its containers.

    `environment` is of `NAME=value`.
    """

    name: str
    nodes: tuple[device_node.DeviceNode, ...]
    environment: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()


_ENVIRONMENT = jinja2.Environment(
    undefined=jinja2.StrictUndefined, autoescape=True, keep_trailing_newline=True
)
_COMPILED = _ENVIRONMENT.from_string(_TEMPLATE)


def render(kind: str, common: Common, devices: tuple[Device, ...]) -> str:
    """The spec of one claim; `kind` is `<vendor>/<class>`."""
    return _COMPILED.render(kind=kind, common=common, devices=devices)
