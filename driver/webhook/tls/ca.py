"""The webhook's own certificates: an authority, what it signs, and when each is replaced.

The API server believes what stands in `caBundle`; whoever is to be believed must stand there before
it signs anything. So a new authority is announced first, and signs an hour later; the one before
stays believed. A certificate is replaced when two thirds of its time are over.
"""

import datetime as dt
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from driver import errors

AUTHORITY = dt.timedelta(days=3 * 365)
LEAF = dt.timedelta(days=90)
ANNOUNCED = dt.timedelta(hours=1)
_SKEW = dt.timedelta(hours=1)
"""Certificates are good an hour before they are made: clocks differ."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes

    @property
    def read(self) -> x509.Certificate:
        """The certificate. Raises ValueError."""
        return x509.load_pem_x509_certificate(self.certificate)


@dataclass(frozen=True, slots=True)
class Bundle:
    """Serving pair, its CA, and the next (`following`) or previous (`former`) CA."""

    authority: Pair
    leaf: Pair
    following: Pair | None = None
    former: bytes = b""

    @property
    def trusted(self) -> bytes:
        """All that is to stand in `caBundle`."""
        following = self.following.certificate if self.following else b""
        return self.authority.certificate + following + self.former


def ensure_bundle(bundle: Bundle | None, hosts: Sequence[str], now: dt.datetime) -> Bundle:
    """Return the bundle that should be in use; the same object if nothing is due."""
    if bundle is None or bundle.authority.read.not_valid_after_utc <= now:
        return _begun(hosts, now)
    bundle = _succeeded(bundle, hosts, now)
    if bundle.following is None and _is_due(bundle.authority, now):
        bundle = replace(bundle, following=_authority(now))
    if _is_due(bundle.leaf, now) or _hosts(bundle.leaf) != set(hosts):
        bundle = replace(bundle, leaf=_leaf(bundle.authority, hosts, now))
    return bundle


def render_data(bundle: Bundle) -> dict[str, bytes]:
    """Return a Secret's data; `tls.crt`, `tls.key` and `ca.crt` by their usual names."""
    result = {
        "ca.crt": bundle.trusted,
        "tls.crt": bundle.leaf.certificate,
        "tls.key": bundle.leaf.key,
        "authority.crt": bundle.authority.certificate,
        "authority.key": bundle.authority.key,
        "former.crt": bundle.former,
    }
    if bundle.following is not None:
        result["following.crt"] = bundle.following.certificate
        result["following.key"] = bundle.following.key
    return result


def parse_data(data: Mapping[str, bytes]) -> Bundle:
    """Read it back.

    Raises:
        BadInput: something is missing or is no certificate.
    """
    try:
        following = Pair(data["following.crt"], data["following.key"]) if _has(data) else None
        bundle = Bundle(
            authority=Pair(data["authority.crt"], data["authority.key"]),
            leaf=Pair(data["tls.crt"], data["tls.key"]),
            following=following,
            former=data.get("former.crt", b""),
        )
        for pair in (bundle.authority, bundle.leaf, *((following,) if following else ())):
            _check(pair)
    except (LookupError, ValueError, TypeError) as error:
        raise errors.BadInput("the webhook's Secret", str(error), "what we wrote") from error
    return bundle


def _has(data: Mapping[str, bytes]) -> bool:
    return "following.crt" in data


def _check(pair: Pair) -> None:
    key = serialization.load_pem_private_key(pair.key, None)
    if key.public_key() != pair.read.public_key():
        raise ValueError("a key is not its certificate's")


def _begun(hosts: Sequence[str], now: dt.datetime) -> Bundle:
    authority = _authority(now)
    return Bundle(authority, _leaf(authority, hosts, now))


def _succeeded(bundle: Bundle, hosts: Sequence[str], now: dt.datetime) -> Bundle:
    """The authority that was announced takes over."""
    coming = bundle.following
    if coming is None or coming.read.not_valid_before_utc + _SKEW + ANNOUNCED > now:
        return bundle
    return Bundle(coming, _leaf(coming, hosts, now), former=bundle.authority.certificate)


def _is_due(pair: Pair, now: dt.datetime) -> bool:
    read = pair.read
    life = read.not_valid_after_utc - read.not_valid_before_utc
    return now >= read.not_valid_after_utc - life / 3


def _hosts(pair: Pair) -> set[str]:
    try:
        result = pair.read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = (str(item) for item in result.get_values_for_type(x509.IPAddress))
    return {*result.get_values_for_type(x509.DNSName), *addresses}


def _authority(now: dt.datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    # Each authority has a name of its own: a verifier looks issuers up by name.
    name = _name(f"ration-admission {now:%Y-%m-%dT%H:%M:%S}")
    authority = _builder(name, name, key.public_key(), now, AUTHORITY)
    authority = authority.add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    authority = authority.add_extension(_usage(signs=True), critical=True)
    return Pair(_pem(authority.sign(key, hashes.SHA256())), _key_pem(key))


def _leaf(authority: Pair, hosts: Sequence[str], now: dt.datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    signing = serialization.load_pem_private_key(authority.key, None)
    if not isinstance(signing, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is of another kind than ours")
    issuer = authority.read
    life = min(LEAF, issuer.not_valid_after_utc - now)
    leaf = _builder(_name(hosts[0][:64]), issuer.subject, key.public_key(), now, life)
    leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    leaf = leaf.add_extension(_usage(signs=False), critical=True)
    serves = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    leaf = leaf.add_extension(serves, critical=False)
    named = x509.SubjectAlternativeName([_host(host) for host in hosts])
    leaf = leaf.add_extension(named, critical=False)
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    leaf = leaf.add_extension(signer, critical=False)
    return Pair(_pem(leaf.sign(signing, hashes.SHA256())), _key_pem(key))


def _builder(
    name: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: dt.datetime,
    life: dt.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def not_after(certificate: bytes) -> float:
    """When a certificate in PEM ends, of a chain the first, in seconds since 1970."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
