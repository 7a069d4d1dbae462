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
"""Constructors of the policies, by name in configuration; each takes the workload mix."""
DEFAULT = ("mig-layout", "topology", "fragmentation", "islands", "pack")
"""Connections of sets first, then little waste, then GPUs in use."""
