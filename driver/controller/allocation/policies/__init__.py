"""Placement policies, one a file. Pure: values in, values out; checked by `make arch`."""

from collections.abc import Mapping

from driver.controller.allocation.policies import base, pack, topology

POLICIES: Mapping[str, base.Policy] = {
    one.name: one for one in (topology.Topology(), topology.Islands(), pack.Pack(), pack.Spread())
}
"""Every policy by the name used in configuration."""
DEFAULT = ("topology", "islands", "pack")
