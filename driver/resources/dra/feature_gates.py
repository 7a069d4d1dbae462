"""Feature gates of the API fields that the controller does not serve."""

_GATES = {
    "derivedAttributes": "DRADerivedAttributes",
    "nodeAllocatableResources": "DRANodeAllocatableResources",
    "nodeAllocatableResourceMappings": "DRANodeAllocatableResources",  # its name in 1.36
    "skipNodeOperations": "DRAOptionalNodeOperations",
}


def describe(field_path: str) -> str:
    """Return a field with its feature gate: `skipNodeOperations (feature gate ...)`."""
    gate = _GATES.get(field_path.rpartition(".")[2])
    return f"{field_path} (feature gate {gate})" if gate else field_path
