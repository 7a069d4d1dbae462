"""Checks that the admission webhook's callers can trust it."""

import base64
import binascii
import datetime as dt
from collections.abc import Iterator

from cryptography import x509

from driver.cli.doctor.checks import facts, findings
from driver.resources import fields

_OURS = ".admission.ration.dev"
"""What the names of our webhooks end with, whatever their configuration is called."""
_FIX = (
    "the webhook's leader writes caBundle: look at the admission pods' logs; with cert-manager, "
    "at the Certificate"
)


def certificates(seen: facts.Facts) -> Iterator[findings.Finding]:
    """Each configuration of ours has certificates of authorities that hold today."""
    if isinstance(seen.webhooks, facts.Unreadable):
        yield findings.unreadable_finding("webhook", seen.webhooks)
        return
    ours = [webhook for webhook in seen.webhooks if any(_bundles(webhook))]
    if not ours and facts.has_plugin(seen):
        text = "no admission webhook: configurations are refused on the nodes only"
        yield findings.Finding("webhook", findings.State.NOTE, text)
    for webhook in ours:
        problems = sorted(
            {p for _, bundle in _bundles(webhook) if (p := problem(bundle, seen.now))}
        )
        text = f"{fields.text(webhook, 'kind', default='configuration')} {facts.name(webhook)}"
        if problems:
            yield findings.Finding(
                "webhook", findings.State.WRONG, f"{text}: {'; '.join(problems)}", _FIX
            )
        else:
            yield findings.Finding("webhook", findings.State.FINE, f"{text} has valid certificates")


def problem(bundle: str, now: dt.datetime) -> str | None:
    """Return what is wrong with a `caBundle`, base64 of PEM; None if a certificate is valid."""
    if not bundle:
        return "caBundle is empty"
    try:
        result = x509.load_pem_x509_certificates(base64.b64decode(bundle, validate=True))
    except (binascii.Error, ValueError) as e:
        return f"caBundle is no certificate ({e})"
    if any(item.not_valid_before_utc <= now <= item.not_valid_after_utc for item in result):
        return None
    last = max(item.not_valid_after_utc for item in result)
    if last < now:
        return f"caBundle expired on {last:%Y-%m-%d %H:%M} UTC"
    return "caBundle is not valid yet"


def _bundles(configuration: fields.Raw) -> Iterator[tuple[str, str]]:
    for path, item in fields.objects(configuration, "webhooks"):
        if fields.text(item, "name", path).endswith(_OURS):
            caller = fields.mapping(item, "clientConfig", path)
            yield fields.text(item, "name", path), fields.text(caller, "caBundle", path)
