"""Functions on strings in CEL: cel-go's strings of version 2, and Kubernetes' `find`. Pure.

The former are the engine's own and are declared here one by one, because it lets nobody add to a
name of its extension, and Kubernetes adds `indexOf` for lists. The latter are of RE2, as `matches`
is (k8s.io/apiserver pkg/cel/library/regex.go of v0.37.1).
"""

import functools
import re
from typing import Final

import re2

from driver.resources.cel.declarations import Overload

_S: Final = "string"
_N: Final = "int"
_NUMBERS: Final = {
    "@string_to_int64": re.compile(r"[+-]?[0-9]+"),
    "@string_to_uint64": re.compile(r"[0-9]+"),
    "@string_to_double": re.compile(
        r"[+-]?([0-9]+\.?[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|inf|infinity|nan)",
        re.IGNORECASE,
    ),
}
_QUIET: Final = re2.Options()
_QUIET.log_errors = False


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str) -> "re2._Regexp":
    return re2.compile(pattern, _QUIET)


def is_pattern(text: str) -> bool:
    """Return whether a text is a regular expression."""
    try:
        _compiled(text)
    except re2.error:
        return False
    return True


def _find(text: str, pattern: str) -> str:
    result = _all(text, pattern, 1)
    return result[0] if result else ""


def _all(text: str, pattern: str, most: int = -1) -> list[str]:
    """Return the matches as Go finds them: an empty match right after another is none."""
    result: list[str] = []
    end = -1
    try:
        matches = _compiled(pattern).finditer(text)
    except re2.error as e:
        raise ValueError(f"illegal regular expression: {e}") from e
    for match in matches:
        if 0 <= most <= len(result):
            break
        if match.start() != match.end() or match.start() != end:
            result.append(match.group())
        end = match.end()
    return result


def overloads() -> list[Overload]:
    """Both libraries."""
    return [
        Overload("charAt", "string_char_at_int", (_S, _N), _S),
        Overload("indexOf", "string_index_of_string", (_S, _S), _N),
        Overload("indexOf", "string_index_of_string_int", (_S, _S, _N), _N),
        Overload("lastIndexOf", "string_last_index_of_string", (_S, _S), _N),
        Overload("lastIndexOf", "string_last_index_of_string_int", (_S, _S, _N), _N),
        Overload("join", "list_join", ("list<string>",), _S),
        Overload("join", "list_join_string", ("list<string>", _S), _S),
        Overload("lowerAscii", "string_lower_ascii", (_S,), _S),
        Overload("upperAscii", "string_upper_ascii", (_S,), _S),
        Overload("replace", "string_replace_string_string", (_S, _S, _S), _S),
        Overload("replace", "string_replace_string_string_int", (_S, _S, _S, _N), _S),
        Overload("split", "string_split_string", (_S, _S), "list<string>"),
        Overload("split", "string_split_string_int", (_S, _S, _N), "list<string>"),
        Overload("substring", "string_substring_int", (_S, _N), _S),
        Overload("substring", "string_substring_int_int", (_S, _N, _N), _S),
        Overload("trim", "string_trim", (_S,), _S),
        Overload("format", "string_format", (_S, "list<dyn>"), _S),
        Overload("strings.quote", "strings_quote", (_S,), _S, member=False),
        Overload("find", "string_find_string", (_S, _S), _S, _find),
        Overload("findAll", "string_find_all_string", (_S, _S), "list<string>", _all),
        Overload("findAll", "string_find_all_string_int", (_S, _S, _N), "list<string>", _all),
    ]


def implementations() -> list[Overload]:
    """Numbers in texts: what the engine reads of them besides, Kubernetes does not."""
    return [
        Overload(name, name, (_S,), _S, functools.partial(_number, pattern), member=False)
        for name, pattern in _NUMBERS.items()
    ]


def _number(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    return text
