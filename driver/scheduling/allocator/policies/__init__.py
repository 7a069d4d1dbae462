"""Placement policies, one a file. Pure: values in, values out; checked by `make arch`."""

from collections.abc import Callable, Mapping

from driver.scheduling.allocator.policies import (
    base,
    fragmentation,
    mig_layout,
    pack,
    topology,
    workload_mix,
)

POLICIES: Mapping[str, Callable[[workload_mix.WorkloadMix], base.Policy]] = {
    mig_layout.MigLayout.name: lambda _usual: mig_layout.MigLayout(),
    topology.Topology.name: lambda _usual: topology.Topology(),
    fragmentation.Fragmentation.name: fragmentation.Fragmentation,
    topology.Islands.name: lambda _usual: topology.Islands(),
    pack.Pack.name: lambda _usual: pack.Pack(),
    pack.Spread.name: lambda _usual: pack.Spread(),
}
"""How every policy is made, by the name used in configuration, of what is usually asked."""
DEFAULT = ("mig-layout", "topology", "fragmentation", "islands", "pack")
"""Sets are connected well first; then little is wasted; then what is in use is filled."""
