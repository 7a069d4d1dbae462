import pytest

from hack import leaks


@pytest.mark.parametrize(
    "line",
    [
        "-----BEGIN RSA " + "PRIVATE KEY-----",
        "token = 'ghp_" + "a1B2" * 9 + "'",
        "aws: AKIA" + "ABCD" * 4,
        "see https://somebody:" + "s3cret" + "@registry.example.com/v2",
    ],
)
def test_a_secret_is_found_by_its_form(line: str) -> None:
    assert [text for _, text in leaks.found(iter([line]))] == [line]


def test_a_digest_is_no_secret() -> None:
    assert not list(leaks.found(iter(["sha256: " + "0f" * 32, "password: asked for"])))
