import itertools

from driver.resources.dra import claims
from tests.chaos import asks


def drawn(count: int, seed: int = 7) -> list[asks.Ask]:
    return list(itertools.islice(asks.asks(seed), count))


def test_the_same_seed_asks_for_the_same() -> None:
    assert drawn(300) == drawn(300)
    assert drawn(300) != drawn(300, seed=8)


def test_every_form_and_every_face_comes_soon() -> None:
    found = drawn(120)
    assert {one.form for one in found} == set(asks.Form)
    assert {one.face for one in found} == {"whole", "mps", "mig", "ts"}
    assert {one.count for one in found} == {1, 2, 4}


def test_every_claim_can_be_read_and_only_onlookers_take_nothing() -> None:
    for ask in drawn(200):
        read = claims.parse({"metadata": {"name": "c"}, "spec": asks.claim_spec(ask)})
        assert read.spec.requests
        assert (ask.gpus == 0) == (ask.form is asks.Form.ADMIN)


def test_twins_share_a_claim_and_others_have_their_own() -> None:
    for ask in drawn(200):
        entries = [asks.pod(ask, name)["spec"]["resourceClaims"][0] for name in ask.pod_names]
        assert len(entries) == ask.pods
        named = {one.get("resourceClaimName") for one in entries}
        assert named == ({ask.claim} if ask.claim else {None})
        assert (ask.form is asks.Form.TWINS) == (bool(ask.claim) and ask.pods == 2)
