"""The certificates of `<data_dir>/tls`."""

import datetime
import ssl
import stat
import sys
from pathlib import Path

import pytest

from hooksaga.local import tls


def contents(certificates: tls.Certificates) -> tuple[bytes, bytes]:
    return certificates.ca.read_bytes(), certificates.server.read_bytes()


def test_they_are_made_once(tmp_path: Path) -> None:
    first = contents(tls.ensure_certificates(tmp_path))
    assert contents(tls.ensure_certificates(tmp_path)) == first


def test_they_load_as_a_server_and_as_a_trusted_authority(tmp_path: Path) -> None:
    certificates = tls.ensure_certificates(tmp_path)
    assert certificates.server_context().minimum_version == ssl.TLSVersion.TLSv1_2
    assert len(ssl.create_default_context(cafile=str(certificates.ca)).get_ca_certs()) >= 1


@pytest.mark.skipif(sys.platform == "win32", reason="permission bits")
def test_the_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    certificates = tls.ensure_certificates(tmp_path)
    assert stat.S_IMODE(certificates.server.stat().st_mode) == 0o600
    assert b"PRIVATE KEY" not in certificates.ca.read_bytes()


def test_they_are_renewed_before_they_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "VALID_FOR", tls.RENEW_WITHIN - datetime.timedelta(days=1))
    soon_over = contents(tls.ensure_certificates(tmp_path))
    monkeypatch.undo()
    renewed = contents(tls.ensure_certificates(tmp_path))
    assert renewed != soon_over
    assert contents(tls.ensure_certificates(tmp_path)) == renewed


@pytest.mark.parametrize("damaged", ["ca.pem", "server.pem"])
@pytest.mark.parametrize("content", [None, b"", b"not a certificate"])
def test_damaged_files_are_made_again(tmp_path: Path, damaged: str, content: bytes | None) -> None:
    tls.ensure_certificates(tmp_path)
    path = tmp_path / "tls" / damaged
    path.unlink() if content is None else path.write_bytes(content)
    certificates = tls.ensure_certificates(tmp_path)
    assert b"BEGIN CERTIFICATE" in certificates.ca.read_bytes()
    certificates.server_context()


def test_an_authority_that_did_not_sign_is_replaced(tmp_path: Path) -> None:
    ours = tls.ensure_certificates(tmp_path / "ours")
    theirs = tls.ensure_certificates(tmp_path / "theirs")
    ours.ca.write_bytes(theirs.ca.read_bytes())
    tls.ensure_certificates(tmp_path / "ours")
    assert ours.ca.read_bytes() != theirs.ca.read_bytes()
