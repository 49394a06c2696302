"""Certificates for receivers on this machine: an authority of our own and one server certificate.

The authority's key is thrown away once it has signed, so nobody can ever sign another name with it. A client
trusts `ca.pem`; when the certificate is renewed the authority is a new one, to be read again by clients.
"""

import datetime
import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from hooksaga.local.file_lock import locked
from hooksaga.local.private_folder import make_private

NAMES = ("localhost", "127.0.0.1", "::1")
VALID_FOR = datetime.timedelta(days=365)
RENEW_WITHIN = datetime.timedelta(days=30)


@dataclass(frozen=True)
class Certificates:
    """Paths of the files: `ca` is for clients, `server` holds the private key and its certificate."""

    ca: Path
    server: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.server)
        return context


def ensure_certificates(data_dir: Path) -> Certificates:
    """The certificates of `<data_dir>/tls`, made or renewed when needed. Safe in many processes at once."""
    folder = data_dir / "tls"
    make_private(folder)
    certificates = Certificates(folder / "ca.pem", folder / "server.pem")
    with locked(folder / "lock"):
        if not _are_valid(certificates):
            _make(certificates)
    return certificates


def _are_valid(certificates: Certificates) -> bool:
    """They exist, belong together, and will not expire soon."""
    try:
        authority = x509.load_pem_x509_certificate(certificates.ca.read_bytes())
        server = x509.load_pem_x509_certificate(certificates.server.read_bytes())
        server.verify_directly_issued_by(authority)
    except (FileNotFoundError, ValueError, InvalidSignature):
        return False
    return server.not_valid_after_utc - datetime.datetime.now(datetime.UTC) > RENEW_WITHIN


def _make(certificates: Certificates) -> None:
    authority = trustme.CA(organization_name="hooksaga, on this machine only")
    expires = datetime.datetime.now(datetime.UTC) + VALID_FOR
    server = authority.issue_cert(*NAMES, not_after=expires)
    _replace(certificates.ca, authority.cert_pem.bytes())
    _replace(certificates.server, server.private_key_and_cert_chain_pem.bytes())


def _replace(path: Path, content: bytes) -> None:
    """Readable by its owner alone from its first byte on."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_bytes(content)
    draft.replace(path)
