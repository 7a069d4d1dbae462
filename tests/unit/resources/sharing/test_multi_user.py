import pytest

from driver.resources.sharing import multi_user


@pytest.mark.parametrize(
    ("version", "number"), [("580.105.08", 580), ("535.0.0", 535), ("550", 550)]
)
def test_the_major_version_of_a_driver_decides(version: str, number: int) -> None:
    assert multi_user.major(version) == number


def test_a_driver_that_does_not_tell_its_version_is_refused_nothing() -> None:
    assert not multi_user.MpsServer(multi_user.major("")).missing_support


@pytest.mark.parametrize(
    ("driver", "capability", "words"),
    [
        (579, (9, 0), "driver 579; expected 580 at least"),
        (580, (6, 1), "compute capability 6.1; expected 7.0 at least"),
        (580, (7, 0), ""),
    ],
)
def test_missing_requirements_are_reported(
    driver: int, capability: tuple[int, int], words: str
) -> None:
    assert multi_user.MpsServer(driver, capability).missing_support == words
