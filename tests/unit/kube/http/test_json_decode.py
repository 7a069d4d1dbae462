import json
from typing import Any

import pytest

from driver.kube.http import json_decode
from driver.resources import fields

TOO_DEEP = 5000


def nested(levels: int, inner: str = "1") -> str:
    return "[" * levels + inner + "]" * levels


def depth_of(value: Any) -> int:
    depth = 0
    while isinstance(value, list):
        value, depth = value[0], depth + 1
    return depth


def test_values_nested_too_deeply_are_cut_off_and_the_rest_stays() -> None:
    text = f'{{"a": "]]{{\\"", "b": [{nested(TOO_DEEP)}, 2], "c": {{"d": [[3]]}}}}'
    decoded = json_decode.decode(text.encode())
    assert isinstance(decoded, dict)
    assert (decoded["a"], decoded["b"][1], decoded["c"]) == (']]{"', 2, {"d": [[3]]})
    assert fields.MOST_NESTED < depth_of(decoded["b"][0]) < json_decode.MOST_DEPTH


def test_brackets_in_texts_nest_nothing() -> None:
    deep = nested(TOO_DEEP, json.dumps("]" * 2 * TOO_DEEP))
    assert json_decode.decode(f'[{deep}, "[[\\\\", 7]'.encode())[1:] == ["[[\\", 7]  # type: ignore[index]


@pytest.mark.parametrize("text", [nested(TOO_DEEP)[:-1], "[" * TOO_DEEP, nested(TOO_DEEP) + "]"])
def test_invalid_json_is_none_at_any_depth(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|Extra"):
        json_decode.decode(text.encode())
