"""Values for tests: minimal, every field by keyword."""

from collections.abc import Mapping, Sequence

from driver import ids, names
from driver.kubeletplugin import ports
from driver.resources.dra import claims

NODE = "node-1"
UID = ids.ClaimUid("5c7d1f6e-0000-4000-8000-000000000001")
OTHER_UID = ids.ClaimUid("5c7d1f6e-0000-4000-8000-000000000002")


def numbered_uid(number: int) -> ids.ClaimUid:
    """Return the UID of a claim that a test numbers."""
    return ids.ClaimUid(f"5c7d1f6e-0000-4000-8000-{number:012d}")


def a_ref(uid: ids.ClaimUid = UID, name: str = "one") -> ports.ClaimRef:
    """A claim as the kubelet names it."""
    return ports.ClaimRef("default", name, uid)


def a_result(
    device: str = "gpu-0000-53-00-0",
    *,
    request: str = "gpu",
    pool: str = NODE,
    driver: str = names.DRIVER,
    admin_access: bool = False,
) -> claims.Result:
    """One allocated device."""
    return claims.Result(request, claims.DeviceId(driver, pool, device), admin_access)


def an_allocated_claim(
    *results: claims.Result,
    uid: ids.ClaimUid = UID,
    name: str = "one",
    configs: Sequence[Mapping[str, object]] = (),
) -> claims.Claim:
    """A claim with these results, one whole GPU when none is named; `configs` are ours."""
    allocation = claims.Allocation(
        results=results or (a_result(),),
        configs=tuple(
            claims.AllocatedConfig(
                from_class=False,
                requests=(),
                opaque={"driver": names.DRIVER, "parameters": parameters},
            )
            for parameters in configs
        ),
    )
    return claims.Claim("default", name, uid, "1", allocation=allocation)
