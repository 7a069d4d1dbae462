from pathlib import Path

from hack.emulated import suite


def test_the_pins_are_those_of_the_lock_with_their_hashes() -> None:
    lock = (
        "pytest==9.2.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        "ruff==1.0 \\\n    --hash=sha256:cc\n"
        "pluggy==1.7.0 \\\n    --hash=sha256:dd\n"
    )
    assert suite.pins(lock) == (
        "pytest==9.2.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
        "pluggy==1.7.0 \\\n    --hash=sha256:dd\n"
    )


def test_every_package_that_the_tests_need_is_locked() -> None:
    assert suite.pins(suite.LOCK.read_text()).count("==") == len(suite.PACKAGES)


def test_every_test_that_is_named_is_there() -> None:
    tests = Path(__file__).parents[2]
    assert [name for name in suite.TESTS if not (tests / name).exists()] == []
