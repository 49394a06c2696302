"""Certificates for receivers on this machine: a local authority and one server certificate.

The authority's key is discarded after signing, so it can sign no other name. Clients trust `ca.pem`; renewing the
certificate creates a new authority, which clients must load again.
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
    """Paths of the files: `ca` is for clients, `server` contains the private key and its certificate."""

    ca: Path
    server: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.server)
        return context


def ensure_certificates(data_dir: Path) -> Certificates:
    """Create or renew the certificates in `<data_dir>/tls`, and return them. Safe in concurrent processes."""
    folder = data_dir / "tls"
    make_private(folder)
    certificates = Certificates(folder / "ca.pem", folder / "server.pem")
    with locked(folder / "lock"):
        if not _are_valid(certificates):
            _make(certificates)
    return certificates


def _are_valid(certificates: Certificates) -> bool:
    """Return whether they exist, match, and will not expire soon."""
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
    """Write a file that is readable by its owner only from its first byte on."""
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_bytes(content)
    draft.replace(path)
