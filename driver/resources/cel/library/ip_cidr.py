"""IP addresses and networks in CEL (k8s.io/apiserver pkg/cel/library/{ip,cidr}.go v0.37.1). Pure.

As strict as Go's net/netip: no leading zeros. Kubernetes takes no zones and no IPv4 within IPv6.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

from driver.resources.cel import messages
from driver.resources.cel.declarations import Overload

_IP: Final = messages.IP
_CIDR: Final = messages.CIDR
_LENGTH: Final = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_SIX: Final = 6
_LINK_LOCAL_GROUPS: Final = ipaddress.IPv4Network("224.0.0.0/24")
_SCOPE: Final = 0xF
_LINK_LOCAL_SCOPE: Final = 0x2


def _address(text: str) -> _Address:
    if not text.isascii():
        raise ValueError(f"{text!r} is no IP address")
    result = ipaddress.ip_address(text)
    if isinstance(result, ipaddress.IPv6Address) and (result.scope_id or result.ipv4_mapped):
        raise ValueError(f"{text!r} has a zone or is an IPv4 address within IPv6")
    return result


def is_address_within_brackets(text: str) -> bool:
    """Return whether a URL may bracket it: IPv6, with a zone or embedded IPv4."""
    try:
        return text.isascii() and ipaddress.ip_address(text).version == _SIX
    except ValueError:
        return False


def _network(text: str) -> _Interface:
    address, slash, length = text.rpartition("/")
    result = _address(address) if slash else None
    if result is None or not _LENGTH.fullmatch(length) or int(length) > result.max_prefixlen:
        raise ValueError(f"{text!r} is no network address")
    return ipaddress.ip_interface(f"{result}/{length}")


def _to_ip(text: str) -> object:
    return messages.new_value(_IP, str(_address(text)))


def _to_cidr(text: str) -> object:
    return messages.new_value(_CIDR, str(_network(text)))


def _is_ip(text: str) -> bool:
    try:
        _address(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        _network(text)
    except ValueError:
        return False
    return True


def _is_canonical(text: str) -> bool:
    return str(_address(text)) == text


def _ip(value: object) -> _Address:
    return ipaddress.ip_address(messages.value_text(value))


def _cidr(value: object) -> _Interface:
    return ipaddress.ip_interface(messages.value_text(value))


def _family(value: object) -> int:
    return _ip(value).version


def _is_unspecified(value: object) -> bool:
    return _ip(value).is_unspecified


def _is_loopback(value: object) -> bool:
    return _ip(value).is_loopback


def _is_link_local_multicast(value: object) -> bool:
    """Return whether it is link-local multicast; for IPv6 by scope, ignoring flags."""
    result = _ip(value)
    if isinstance(result, ipaddress.IPv4Address):
        return result in _LINK_LOCAL_GROUPS
    return result.is_multicast and result.packed[1] & _SCOPE == _LINK_LOCAL_SCOPE


def _is_link_local_unicast(value: object) -> bool:
    return _ip(value).is_link_local


def _is_global_unicast(value: object) -> bool:
    result = _ip(value)
    return not (
        result.is_unspecified
        or result.is_loopback
        or result.is_multicast
        or result.is_link_local
        or result == ipaddress.IPv4Address("255.255.255.255")
    )


def _contains_ip(value: object, other: object) -> bool:
    return _ip(other) in _cidr(value).network


def _contains_ip_text(value: object, other: str) -> bool:
    return _address(other) in _cidr(value).network


def _covers(network: _Interface, other: _Interface) -> bool:
    here, address = network.network, other.network
    if isinstance(here, ipaddress.IPv4Network) and isinstance(address, ipaddress.IPv4Network):
        return address.subnet_of(here)
    if isinstance(here, ipaddress.IPv6Network) and isinstance(address, ipaddress.IPv6Network):
        return address.subnet_of(here)
    return False


def _contains_cidr(value: object, other: object) -> bool:
    return _covers(_cidr(value), _cidr(other))


def _contains_cidr_text(value: object, other: str) -> bool:
    return _covers(_cidr(value), _network(other))


def _ip_of(value: object) -> object:
    return messages.new_value(_IP, str(_cidr(value).ip))


def _length(value: object) -> int:
    return _cidr(value).network.prefixlen


def _masked(value: object) -> object:
    return messages.new_value(_CIDR, str(_cidr(value).network))


def overloads() -> list[Overload]:
    """Both libraries, but for `string`."""
    text, ip, cidr = ("string",), (_IP,), (_CIDR,)
    return [
        Overload("ip", "string_to_ip", text, _IP, _to_ip, member=False),
        Overload("isIP", "is_ip", text, "bool", _is_ip, member=False),
        Overload("ip.isCanonical", "ip_is_canonical", text, "bool", _is_canonical, member=False),
        Overload("family", "ip_family", ip, "int", _family),
        Overload("isUnspecified", "ip_is_unspecified", ip, "bool", _is_unspecified),
        Overload("isLoopback", "ip_is_loopback", ip, "bool", _is_loopback),
        Overload(
            "isLinkLocalMulticast",
            "ip_is_link_local_multicast",
            ip,
            "bool",
            _is_link_local_multicast,
        ),
        Overload(
            "isLinkLocalUnicast", "ip_is_link_local_unicast", ip, "bool", _is_link_local_unicast
        ),
        Overload("isGlobalUnicast", "ip_is_global_unicast", ip, "bool", _is_global_unicast),
        Overload("cidr", "string_to_cidr", text, _CIDR, _to_cidr, member=False),
        Overload("isCIDR", "is_cidr", text, "bool", _is_cidr, member=False),
        Overload(
            "containsIP", "cidr_contains_ip_string", (_CIDR, *text), "bool", _contains_ip_text
        ),
        Overload("containsIP", "cidr_contains_ip_ip", (_CIDR, _IP), "bool", _contains_ip),
        Overload(
            "containsCIDR", "cidr_contains_cidr_string", (_CIDR, *text), "bool", _contains_cidr_text
        ),
        Overload("containsCIDR", "cidr_contains_cidr", (_CIDR, _CIDR), "bool", _contains_cidr),
        Overload("ip", "cidr_ip", cidr, _IP, _ip_of),
        Overload("prefixLength", "cidr_prefix_length", cidr, "int", _length),
        Overload("masked", "cidr_masked", cidr, _CIDR, _masked),
    ]


def as_string(others: Mapping[str, str]) -> list[Overload]:
    """`string` of addresses, and of the types of `others` by overload."""
    taken = {**others, "ip_to_string": _IP, "cidr_to_string": _CIDR}
    return [
        Overload("string", key, (type_name,), "string", member=False)
        for key, type_name in taken.items()
    ]


def implementations() -> list[Overload]:
    """Return the implementations of the overloads."""
    return [
        Overload(
            "@text", f"@text_{type_name}", (type_name,), "string", messages.value_text, member=False
        )
        for type_name in (_IP, _CIDR)
    ]
