"""TLS for a sandbox: a new authority, and its certificate for one host."""

import datetime
import ipaddress
import ssl
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME: Final = datetime.timedelta(days=30)
_SKEW: Final = datetime.timedelta(days=1)


class _Issued(NamedTuple):
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)


def server_tls(host: str, authority_file: Path | None = None) -> tuple[ssl.SSLContext, str]:
    """A server's context with ALPN h2 for `host`, and the PEM of the authority to trust.

    With a file, the authority is kept over restarts, so that clients need not trust a new one.
    """
    chain, authority = server_chain(host, authority_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["h2"])
    with tempfile.TemporaryDirectory() as folder:  # mode 700; ssl reads only files
        file = Path(folder) / "chain.pem"
        file.write_bytes(chain)
        context.load_cert_chain(file)
    return context, authority


def server_chain(host: str, authority_file: Path | None = None) -> tuple[bytes, str]:
    """A private key with its certificate for `host`, and the authority to trust; all in PEM."""
    authority = _kept(authority_file) or _new_authority(authority_file)
    server = _issue("pushsvc sandbox", authority, host)
    return _private(server) + server.pem, authority.pem.decode("ascii")


def _kept(file: Path | None) -> _Issued | None:
    """The authority in the file, unless it expires soon."""
    if file is None or not file.exists():
        return None
    pem = file.read_bytes()
    certificate = x509.load_pem_x509_certificate(pem)
    key = load_pem_private_key(pem, password=None)
    now = datetime.datetime.fromtimestamp(time.time(), datetime.UTC)
    if certificate.not_valid_after_utc < now + _SKEW:
        return None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(f"{file} holds another kind of key")
    return _Issued(key, certificate)


def _new_authority(file: Path | None) -> _Issued:
    authority = _issue("pushsvc sandbox authority", None, None)
    if file is not None:
        file.touch(mode=0o600)
        file.write_bytes(_private(authority) + authority.pem)
    return authority


def _private(issued: _Issued) -> bytes:
    return issued.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _issue(name: str, issuer: _Issued | None, host: str | None) -> _Issued:
    """Issues a certificate. Without `issuer` it signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    own_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.fromtimestamp(time.time(), datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(own_name)
        .issuer_name(issuer.certificate.subject if issuer else own_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if host is not None:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        names = x509.SubjectAlternativeName(_names(host))
        builder = builder.add_extension(usage, critical=False).add_extension(names, critical=False)
    return _Issued(key, builder.sign(issuer.key if issuer else key, hashes.SHA256()))


def _names(host: str) -> list[x509.GeneralName]:
    """`host` and the names of the loopback."""
    addresses, names = {"127.0.0.1", "::1"}, {"localhost"}
    try:
        ipaddress.ip_address(host)
        addresses.add(host)
    except ValueError:
        names.add(host)
    found: list[x509.GeneralName] = [x509.DNSName(name) for name in sorted(names)]
    return found + [x509.IPAddress(ipaddress.ip_address(each)) for each in sorted(addresses)]
