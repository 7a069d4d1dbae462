import hypothesis
import pytest
from hypothesis import strategies as st

from simulator import client, compiler, device_calls, library, machine, node, wire

# A line is UTF-8 (no surrogates), and C strings end at NUL.
TEXT = st.text(
    st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from("\\\t\n\rtnr")
)


def ask(call: str, *arguments: str, visible: frozenset[int] = frozenset(range(8))) -> list[str]:
    built = machine.build("hgx-h100", seed="node-1")
    return wire.split(node.answer_nvml(built, wire.Request(visible, call, arguments), root=False))


@hypothesis.given(st.lists(TEXT, min_size=1))
def test_fields_come_back_from_a_line_as_they_went_in(fields: list[str]) -> None:
    assert wire.split(wire.join(fields)) == fields


@hypothesis.given(st.lists(TEXT, min_size=1))
def test_a_line_holds_no_line_end(fields: list[str]) -> None:
    line = wire.join(fields)
    assert "\n" not in line
    assert "\r" not in line


@hypothesis.given(
    st.frozensets(st.integers(0, 253)), TEXT, st.lists(TEXT), st.frozensets(st.integers(1, 4322))
)
def test_a_request_comes_back_from_its_line(
    visible: frozenset[int], call: str, arguments: list[str], caps: frozenset[int]
) -> None:
    request = wire.Request(visible, call, tuple(arguments), caps)
    assert wire.parse_request(wire.render_request(request)) == request


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("2\t0\tdevice_get_count", "protocol version '2'"),
        ("1\t0", "a version, a view and a call"),
        ("1\t0,x\tdevice_get_count", "numbers parted by commas"),
        ("1\t0\tbad\\escape", "unknown escape"),
        ("1\t0\tends with \\", "unknown escape"),
    ],
)
def test_a_line_of_another_protocol_is_refused_in_words(line: str, words: str) -> None:
    with pytest.raises(wire.WireError, match=words):
        wire.parse_request(line)


def test_a_structure_is_its_members_and_a_list_has_its_length_in_front() -> None:
    pair = [device_calls.Utilization(gpu=1, memory=2), device_calls.Utilization(gpu=3, memory=4)]
    assert list(wire.flatten(pair)) == ["2", "1", "2", "3", "4"]
    assert list(wire.flatten((True, "text"))) == ["1", "text"]
    assert list(wire.flatten(None)) == []


def test_a_call_goes_through_as_text() -> None:
    assert ask("device_get_count") == ["0", "8"]
    assert ask("device_get_handle_by_index", "8") == ["2"]
    code, handle = ask("device_get_handle_by_index", "0", visible=frozenset({3}))
    assert (code, handle) == ("0", "gpu/00000000:86:00.0")
    assert ask("device_get_field_values", handle, "91,999", "0,0") == [
        "0",
        "2",
        "0",
        "1",
        "18",
        "3",
        "1",
        "0",
    ]


@pytest.mark.parametrize("call", ["shutdown", "_gpu", "machine", "device_get_nothing", ""])
def test_only_nvml_calls_are_reachable(call: str) -> None:
    assert ask(call) == ["13"]


def test_arguments_that_do_not_fit_the_call_are_invalid() -> None:
    assert ask("device_get_count", "1")[0] == "2"
    assert ask("device_get_handle_by_index", "one")[0] == "2"


def test_a_client_that_is_not_root_may_not_set() -> None:
    assert ask("device_set_compute_mode", "gpu/00000000:53:00.0", "3") == ["4"]


def test_every_call_of_the_model_exists_in_the_c_library() -> None:
    source = "".join(path.read_text() for path in compiler.SOURCES.glob("*.c"))
    calls = {
        name for name in dir(library.Library) if client.is_call(getattr(library.Library, name))
    }
    assert {call for call in calls if f'"{call}"' not in source} == set()
