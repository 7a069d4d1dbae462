"""Text of a claim's CDI spec: static text, every value through `tojson`. Pure.

The output is not trusted: `model.parse` reads it back and checks it (D12).
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
    """A host file or folder, mounted at a container path."""

    host_path: str
    container_path: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hook:
    """Program that the runtime runs on the host before a container starts; args[0] is its name.

    It runs as root in the container's mount namespace.
    """

    path: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Common:
    """Edits common to every device of the spec; `environment` holds `NAME=value`."""

    nodes: tuple[device_node.DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    hooks: tuple[Hook, ...] = ()
    environment: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """One device: its name in the spec, its own nodes, environment and mounts.

    `environment` holds `NAME=value`.
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
    """Return the spec of one claim; `kind` is `<vendor>/<class>`."""
    return _COMPILED.render(kind=kind, common=common, devices=devices)
