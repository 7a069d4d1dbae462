from driver import errors


def test_whatever_was_read_what_is_wrong_with_it_can_be_sent() -> None:
    """JSON can write half a surrogate pair, and no event, condition or gRPC answer can."""
    bad_input = errors.BadInput("at.\ud800", "is '\udfff'", "\u00e9")
    assert str(bad_input).encode().decode() == "at.\\ud800: is '\\udfff'; expected \u00e9"
    assert bad_input.location.isascii()
