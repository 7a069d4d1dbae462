import datetime as dt

import pytest
from cryptography import x509
from cryptography.x509 import verification

from driver import errors
from driver.webhook.tls import ca
from tests.fakes import clock

HOSTS = ("ration-admission.ration-system.svc", "127.0.0.1")
NOW = clock.START
DAY = dt.timedelta(days=1)


def is_believed(bundle: ca.Bundle, leaf: ca.Pair, now: dt.datetime = NOW) -> bool:
    """Return whether a client with `caBundle` believes the first host."""
    trusted = x509.load_pem_x509_certificates(bundle.trusted)
    verifier = (
        verification.PolicyBuilder()
        .store(verification.Store(trusted))
        .time(now)
        .build_server_verifier(x509.DNSName(HOSTS[0]))
    )
    try:
        verifier.verify(leaf.read, [])
    except verification.VerificationError:
        return False
    return True


def begun() -> ca.Bundle:
    return ca.ensure_bundle(None, HOSTS, NOW)


def test_a_client_believes_what_is_made() -> None:
    assert is_believed(begun(), begun().leaf) is False
    first = begun()
    assert is_believed(first, first.leaf)


def test_nothing_changes_while_nothing_is_due() -> None:
    first = begun()
    assert ca.ensure_bundle(first, HOSTS, NOW + 59 * DAY) is first


def test_a_certificate_is_replaced_in_time_by_one_of_the_same_authority() -> None:
    first = begun()
    later = ca.ensure_bundle(first, HOSTS, NOW + 61 * DAY)
    assert later.leaf != first.leaf
    assert later.authority == first.authority
    assert is_believed(first, later.leaf, NOW + 61 * DAY)


def test_other_hosts_are_another_certificate() -> None:
    first = begun()
    assert ca.ensure_bundle(first, tuple(reversed(HOSTS)), NOW) is first
    assert ca.ensure_bundle(first, (*HOSTS, "more.svc"), NOW).leaf != first.leaf


def test_an_authority_is_announced_before_it_signs_and_the_former_stays_believed() -> None:
    first = begun()
    due = NOW + 2 * ca.AUTHORITY / 3 + DAY
    first = ca.ensure_bundle(first, HOSTS, due - 2 * DAY)
    announced = ca.ensure_bundle(first, HOSTS, due)
    assert announced.following is not None
    assert announced.authority == first.authority
    assert announced.leaf == first.leaf
    assert ca.ensure_bundle(announced, HOSTS, due + dt.timedelta(minutes=59)) is announced
    moment = due + dt.timedelta(hours=1)
    after = ca.ensure_bundle(announced, HOSTS, moment)
    assert (after.authority, after.following) == (announced.following, None)
    # Whichever of the two is served, whichever of the two is believed by now.
    assert is_believed(announced, after.leaf, moment)
    assert is_believed(after, announced.leaf, moment)
    assert not is_believed(first, after.leaf, moment)


def test_through_ten_years_every_bundle_is_believed_and_believes_the_one_before() -> None:
    bundle, now = begun(), NOW
    for _ in range(10 * 365 * 4):
        now += DAY / 4
        following = ca.ensure_bundle(bundle, HOSTS, now)
        if following is bundle:
            continue
        assert is_believed(following, following.leaf, now)
        assert is_believed(bundle, following.leaf, now)
        assert is_believed(following, bundle.leaf, now)
        bundle = following


def test_after_years_of_absence_all_begins_anew() -> None:
    moment = NOW + ca.AUTHORITY
    after = ca.ensure_bundle(begun(), HOSTS, moment)
    assert is_believed(after, after.leaf, moment)


def test_a_bundle_is_read_back_as_it_was_written() -> None:
    first = begun()
    due = ca.ensure_bundle(first, HOSTS, NOW + 2 * ca.AUTHORITY / 3 + DAY)
    for bundle in (first, due):
        assert ca.parse_data(ca.render_data(bundle)) == bundle


@pytest.mark.parametrize("key", ["authority.crt", "authority.key", "tls.crt", "tls.key"])
def test_a_damaged_bundle_is_none(key: str) -> None:
    whole = ca.render_data(begun())
    other = ca.render_data(begun())
    for data in ({**whole, key: b"x"}, {**whole, key: other[key]}):
        with pytest.raises(errors.BadInput):
            ca.parse_data(data)
    del whole[key]
    with pytest.raises(errors.BadInput):
        ca.parse_data(whole)
