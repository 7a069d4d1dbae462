import pytest

from driver import errors
from driver.webhook import config


def test_without_flags_it_makes_its_own_certificate() -> None:
    admission_config = config.AdmissionConfig.read([])
    assert admission_config.certificates == "self"
    assert admission_config.webhook_host_port == ("0.0.0.0", 8443)  # noqa: S104 - the default
    assert admission_config.hosts == (
        "ration-admission.ration-system.svc",
        "ration-admission.ration-system",
    )


def test_certificates_from_files_need_both_files() -> None:
    files = "--certificates=files"
    with pytest.raises(errors.BadInput, match="--tls-key-file is needed"):
        config.AdmissionConfig.read([files, "--tls-cert-file=/tls.crt"])
    both = config.AdmissionConfig.read([files, "--tls-cert-file=/a", "--tls-key-file=/b"])
    assert str(both.tls_key_file) == "/b"


@pytest.mark.parametrize("flag", ["--webhook-address=8443", "--certificates=none"])
def test_a_flag_that_makes_no_sense_is_named(flag: str) -> None:
    with pytest.raises(errors.BadInput, match=flag.partition("=")[0]):
        config.AdmissionConfig.read([flag])
