import pytest

from driver import errors
from driver.resources.core import label_selectors

LABELS = {"pool": "gpu", "example.com/zone": "a", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("pool", True),
        ("!pool", False),
        ("! spot", True),
        ("pool=gpu", True),
        ("pool == gpu", True),
        ("pool!=gpu", False),
        ("spot!=yes", True),
        ("empty=", True),
        ("example.com/zone in (a, b)", True),
        ("example.com/zone notin (a,b)", False),
        ("spot notin (yes)", True),
        ("pool=gpu,example.com/zone in (a,b),!spot", True),
        ("pool=gpu, spot", False),
    ],
)
def test_a_selector_in_kubectls_notation_matches_labels(text: str, *, matches: bool) -> None:
    assert label_selectors.parse_text(text, "at").matches(LABELS) is matches


@pytest.mark.parametrize(
    "text",
    ["", "a,", ",", "a b", "a=b c", "a in b", "a in ()", "a in (b", "-a", "a=b=c", "a>1", "x/y/z"],
)
def test_text_that_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(errors.BadInput, match=r"at: .* is no requirement on labels"):
        label_selectors.parse_text(text, "at")
