import itertools

from driver.resources.dra import claims
from tests.chaos import asks


def drawn(count: int, seed: int = 7) -> list[asks.Ask]:
    return list(itertools.islice(asks.asks(seed), count))


def test_the_same_seed_asks_for_the_same() -> None:
    assert drawn(300) == drawn(300)
    assert drawn(300) != drawn(300, seed=8)


def test_every_form_and_every_face_comes_soon() -> None:
    results = drawn(120)
    assert {result.form for result in results} == set(asks.Form)
    assert {result.face for result in results} == {"whole", "mps", "mig", "ts"}
    assert {result.count for result in results} == {1, 2, 4}


def test_every_claim_can_be_read_and_only_onlookers_take_nothing() -> None:
    for answer in drawn(200):
        read = claims.parse({"metadata": {"name": "c"}, "spec": asks.claim_spec(answer)})
        assert read.spec.requests
        assert (answer.gpus == 0) == (answer.form is asks.Form.ADMIN)


def test_twins_share_a_claim_and_others_have_their_own() -> None:
    for answer in drawn(200):
        entries = [asks.pod(answer, name)["spec"]["resourceClaims"][0] for name in answer.pod_names]
        assert len(entries) == answer.pods
        named = {entry.get("resourceClaimName") for entry in entries}
        assert named == ({answer.claim} if answer.claim else {None})
        assert (answer.form is asks.Form.TWINS) == (bool(answer.claim) and answer.pods == 2)
