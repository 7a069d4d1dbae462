import dataclasses

import pytest

from driver import reasons
from driver.api import v1alpha1
from driver.resources import quantities
from driver.resources.sharing import compatibility, multi_user
from tests.support.builders import allocated_claims

MPS = v1alpha1.GpuConfig(sharing=v1alpha1.MpsSharing())
LONG = v1alpha1.GpuConfig(
    sharing=v1alpha1.TimeSlicingSharing(timeSlicing=v1alpha1.TimeSlicing(interval="Long"))
)


def given(
    sharing: str = "mps", config: v1alpha1.GpuConfig | None = None
) -> compatibility.SharingTerms:
    result = dataclasses.replace(
        allocated_claims.a_result("gpu-0000-53-00-0-mps"),
        consumed={"memory": quantities.parse("20Gi"), "compute": quantities.parse("25")},
    )
    result_terms = compatibility.result_terms(
        result, sharing, "team-a", config or v1alpha1.GpuConfig()
    )
    assert isinstance(result_terms, compatibility.SharingTerms)
    return result_terms


def test_a_share_is_what_the_allocation_gave() -> None:
    sharing_terms = given()
    assert (sharing_terms.memory_bytes, sharing_terms.compute_percent) == (20 << 30, 25)
    assert given("time-slicing", LONG).interval == "Long"


def test_a_configuration_of_the_other_way_of_sharing_is_refused() -> None:
    result_terms = compatibility.result_terms(
        allocated_claims.a_result("gpu-0000-53-00-0-mps"), "mps", "team-a", LONG
    )
    assert isinstance(result_terms, compatibility.Conflict)
    assert result_terms.reason is reasons.Reason.CONFIG_INVALID
    assert "is shared by mps" in result_terms.message


def test_claims_that_agree_may_have_the_gpu_together() -> None:
    assert compatibility.find_conflict(given(), given()) is None


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"sharing": "time-slicing"}, reasons.Reason.DEVICE_OVERLAP),
        ({"namespace": "team-b"}, reasons.Reason.NAMESPACES_APART),
        ({"namespace": "team-b", "cross_namespace": True}, reasons.Reason.NAMESPACES_APART),
        ({"interval": "Short"}, reasons.Reason.SHARING_DISAGREES),
        ({"multi_user": False}, reasons.Reason.SHARING_DISAGREES),
    ],
)
def test_claims_that_do_not_agree_are_told_apart(
    other: dict[str, object], reason: reasons.Reason
) -> None:
    conflict = compatibility.find_conflict(given(), dataclasses.replace(given(), **other))  # type: ignore[arg-type]
    assert conflict is not None
    assert conflict.reason is reason
    assert conflict.message


def test_namespaces_share_where_both_classes_say_so() -> None:
    mine = dataclasses.replace(given(), cross_namespace=True)
    other = dataclasses.replace(mine, namespace="team-b")
    assert compatibility.find_conflict(mine, other) is None


def test_an_mps_client_is_told_its_own_limits() -> None:
    mps = v1alpha1.Mps(priority="BelowNormal", maxConnections=8)
    config = v1alpha1.GpuConfig(sharing=v1alpha1.MpsSharing(mps=mps))
    assert compatibility.mps_environment(given(config=config), config) == {
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=20480M",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_CLIENT_PRIORITY": "1",
        "CUDA_DEVICE_MAX_CONNECTIONS": "8",
    }
    assert "CUDA_MPS_CLIENT_PRIORITY" not in compatibility.mps_environment(given(), MPS)


def test_two_shares_in_one_container_do_not_hide_each_other() -> None:
    names = ("gpu-0000-53-00-0-ts", "gpu-0000-64-00-0-ts")
    keys = {key for name in names for key in compatibility.share_environment(name, given())}
    assert keys == {"RATION_GPU_0000_53_00_0_TS", "RATION_GPU_0000_64_00_0_TS"}


@pytest.mark.parametrize(
    ("isolation", "enough"),
    [("hardware", set()), ("limits", {"mps"}), ("none", {"mps", "time-slicing"})],
)
def test_a_share_isolates_as_much_as_is_needed_or_is_refused(
    isolation: v1alpha1.Isolation, enough: set[str]
) -> None:
    need = v1alpha1.SliceConfig(isolation=isolation)
    share = allocated_claims.a_result("gpu-0000-53-00-0-mps")
    for sharing in ("mps", "time-slicing"):
        conflict = compatibility.check_isolation(share, sharing, need)
        assert (conflict is None) == (sharing in enough)
        if conflict is not None:
            assert conflict.reason is reasons.Reason.ISOLATION_TOO_WEAK
            assert f"asks for isolation: {isolation}" in conflict.message
        assert compatibility.check_isolation(share, sharing, None) is None


def several(
    requested: bool | None,  # noqa: FBT001 - a value of the API
    server: multi_user.MpsServer,
) -> compatibility.SharingTerms | compatibility.Conflict:
    sharing = v1alpha1.MpsSharing(mps=v1alpha1.Mps(multiUser=requested))
    share = allocated_claims.a_result("gpu-0000-53-00-0-mps")
    return compatibility.result_terms(
        share, "mps", "team-a", v1alpha1.GpuConfig(sharing=sharing), server
    )


@pytest.mark.parametrize("requested", [None, False])
@pytest.mark.parametrize("driver", [550, 580])
def test_several_users_are_served_where_the_driver_has_it_and_nobody_says_otherwise(
    requested: bool | None,  # noqa: FBT001 - a value of the API
    driver: int,
) -> None:
    result = several(requested, multi_user.MpsServer(driver, (9, 0)))
    assert isinstance(result, compatibility.SharingTerms)
    assert result.multi_user == (requested is None and driver == 580)


def test_several_users_at_once_are_refused_for_good_where_the_driver_lacks_it() -> None:
    result = several(requested=True, server=multi_user.MpsServer(550, (9, 0)))
    assert isinstance(result, compatibility.Conflict)
    assert result.reason is reasons.Reason.CONFIG_INVALID
    assert result.message.endswith(
        "has multiUser: true, and the GPU of gpu-0000-53-00-0-mps has driver 550; expected 580 at "
        "least"
    )


@pytest.mark.parametrize("already", [False, True])
def test_a_claim_that_does_not_say_joins_the_server_as_it_runs_already(*, already: bool) -> None:
    result = several(None, multi_user.MpsServer(580, (9, 0), multi_user=already))
    assert isinstance(result, compatibility.SharingTerms)
    assert result.multi_user is already


def test_a_time_sliced_share_has_no_server() -> None:
    assert not given("time-slicing", LONG).multi_user
