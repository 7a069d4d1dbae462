from pathlib import Path

import pytest

from driver import errors
from driver.controller.config import ControllerConfig


@pytest.mark.parametrize("address", ["127.0.0.1:8081", "localhost:0", "[::1]:8081", ""])
def test_on_the_loopback_nobody_is_asked(address: str) -> None:
    config = ControllerConfig.read([f"--web-address={address}"])
    assert (config.page is None) == (address == "")
    assert config.page is None or not config.page.token_required


@pytest.mark.parametrize("address", ["0.0.0.0:8081", "[::]:8081", "10.0.0.1:0", "page:8081"])
def test_beyond_it_a_token_is_needed(address: str) -> None:
    with pytest.raises(errors.BadInput) as caught:
        ControllerConfig.read([f"--web-address={address}"])
    assert str(caught.value) == (
        f"settings: --web-auth has to be token where others reach the page, at {address}"
    )
    config = ControllerConfig.read([f"--web-address={address}", "--web-auth=token"])
    assert config.page is not None
    assert config.page.token_required


def test_a_certificate_comes_with_its_key() -> None:
    for alone in ("--web-tls-cert-file=a", "--web-tls-key-file=b"):
        with pytest.raises(errors.BadInput, match="--web-tls-key-file goes together with"):
            ControllerConfig.read([alone])
    config = ControllerConfig.read(["--web-tls-cert-file=a", "--web-tls-key-file=b"])
    assert config.page is not None
    assert (config.page.certificate, config.page.key) == (Path("a"), Path("b"))
