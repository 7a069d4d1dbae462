from hypothesis import given
from hypothesis import strategies as st

from driver.kubeletplugin.collectors import power

PARTS = st.dictionaries(
    st.integers(0, 7), st.tuples(st.none() | st.floats(0, 1), st.floats(0, 1)), max_size=8
)
MILLIWATTS = st.integers(0, 2_000_000)
"""As NVML tells them (nvmlDeviceGetPowerUsage): what is finer than that is no reading."""


@given(drawn=MILLIWATTS, parts=PARTS)
def test_the_watts_of_claims_add_up_to_no_more_than_their_gpu_draws(
    drawn: int, parts: dict[int, tuple[float | None, float]]
) -> None:
    watts = drawn / 1000
    busy = {who: did for who, (did, _) in parts.items()}
    attribute_power = power.attribute_power(
        watts, busy, {who: had for who, (_, had) in parts.items()}
    )
    assert sum(attribute_power.values()) <= watts * (1 + 1e-9)
    assert all(value >= 0 for value in attribute_power.values())
    assert attribute_power.keys() <= parts.keys()
