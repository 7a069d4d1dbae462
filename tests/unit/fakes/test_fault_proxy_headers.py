"""The fault proxy's requests: kube-apiserver 1.37 compresses the first events of a watch."""

from tests.fakes.faultproxy import proxy


def test_a_watch_is_asked_for_uncompressed_so_that_it_has_lines() -> None:
    headers = {"Accept": "application/json", "Accept-Encoding": "gzip", "Host": "127.0.0.1:1"}
    assert proxy.forwarded(headers) == {"Accept": "application/json"}
