"""Whatever the API says, and in whatever order: a record goes only when its claim surely has."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from driver import errors, ids
from driver.kubeletplugin.records import checkpoint, staleness
from tests.support.builders import allocated_claims

RECORD = checkpoint.Record(allocated_claims.a_ref(), checkpoint.State.COMPLETED, "boot-1", (), ())
CLAIM = allocated_claims.an_allocated_claim()
words = st.text(max_size=40)
there = st.builds(
    lambda version, allocation, deleting: dataclasses.replace(
        CLAIM, version=version, allocation=allocation, deleting=deleting
    ),
    words,
    st.sampled_from([None, CLAIM.allocation]),
    st.booleans(),
)
replaced = st.uuids().map(lambda uid: dataclasses.replace(CLAIM, uid=ids.ClaimUid(str(uid))))
deleted = st.just(
    errors.NotFound(404, "NotFound", 'resourceclaims.resource.k8s.io "one" not found')
)
failed = st.one_of(
    st.builds(
        lambda kind, status, reason, text: kind(status, reason, text),
        st.sampled_from([errors.Unauthorized, errors.Forbidden, errors.Gone, errors.ServerError]),
        st.integers(400, 599),
        st.sampled_from(["NotFound", "Unknown"]),
        st.one_of(words, st.just('resourceclaims.resource.k8s.io "one" not found')),
    ),
    st.sampled_from(
        [
            errors.NotFound(404, "NotFound", "the server could not find the requested resource"),
            errors.NotFound(404, "Unknown", "404 page not found"),
            errors.NotFound(404, "NotFound", 'nodes "node-1" not found'),
            errors.Unreachable(0, "", "timed out"),
            errors.BadInput("status", "is a list", "an object"),
        ]
    ),
)
gone = st.one_of(replaced, deleted)
kept = st.one_of(there, failed)


@given(st.lists(st.tuples(st.booleans(), gone, kept), max_size=12))
def test_a_record_is_reclaimed_after_two_consecutive_checks_that_miss_its_claim(
    looks: list[tuple[bool, staleness.ReadResult, staleness.ReadResult]],
) -> None:
    count = 0
    history: list[bool] = []
    for is_gone, away, present in looks:
        verdict = staleness.decide(RECORD, away if is_gone else present, count)
        history.append(is_gone)
        expected = history[-2:] == [True, True]
        assert (verdict.act is staleness.Act.RECLAIM) == expected
        assert (verdict.act is staleness.Act.KEEP) == (not is_gone)
        assert bool(verdict.reason) == is_gone
        count = verdict.gone
