"""Placement policies, one a file. Pure: values in, values out; checked by `make arch`."""

from collections.abc import Mapping

from driver.controller.allocation.policies import base, pack

POLICIES: Mapping[str, base.Policy] = {"pack": pack.Pack()}
"""Every policy by the name used in configuration."""
