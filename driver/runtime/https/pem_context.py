"""TLS context from certificates in memory: the standard library reads them from files only."""

import os
import ssl

from driver import errors


def server_context(
    certificate: bytes, key: bytes, socket_class: type[ssl.SSLSocket]
) -> ssl.SSLContext:
    """Return a server's context for TLS 1.2 and later; no key touches a disk.

    Raises:
        BadInput: they are not a certificate and its key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.sslsocket_class = socket_class
    descriptor = os.memfd_create("tls")
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(certificate + b"\n" + key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except (ssl.SSLError, OSError) as error:
        raise errors.BadInput("the certificate", str(error), "PEM and its key") from error
    finally:
        os.close(descriptor)
    return context
