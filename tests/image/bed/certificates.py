"""A certificate authority that only the test bed trusts, a server certificate, and tokens signed with its key."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


def write(folder: Path, hosts: Sequence[str], addresses: Sequence[str]) -> None:
    """Write ca.crt, server.crt and server.key for these hosts, valid for a day.

    The server's certificate is signed by the authority, not by itself: Go and Python refuse a leaf that is its own root
    in different ways.
    """
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = _builder("envlock test bed", authority.public_key(), "envlock test bed")
    root = root.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    root = root.add_extension(usage, critical=True)
    key_id = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    root = root.add_extension(key_id, critical=False)
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    leaf = _builder(hosts[0], server.public_key(), "envlock test bed")
    leaf = leaf.add_extension(x509.SubjectAlternativeName(names), critical=False)
    leaf = leaf.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    leaf = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    leaf = leaf.add_extension(issuer, critical=False)
    key = server.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    folder.mkdir(parents=True, exist_ok=True)
    pem = serialization.Encoding.PEM
    (folder / "ca.crt").write_bytes(root.sign(authority, hashes.SHA256()).public_bytes(pem))
    (folder / "server.crt").write_bytes(leaf.sign(authority, hashes.SHA256()).public_bytes(pem))
    (folder / "server.key").write_bytes(key)


def _builder(name: str, key: ec.EllipticCurvePublicKey, issuer: str) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    subject, by = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (name, issuer))
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(by).public_key(key)
    return made.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)


def token(folder: Path, claims: dict[str, Any]) -> str:
    """Return a JSON web token with these claims, which names the server's certificate as its signer."""
    key = serialization.load_pem_private_key((folder / "server.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    lines = (folder / "server.crt").read_text().split("-----")[2]
    header = {"typ": "JWT", "alg": "ES256", "x5c": ["".join(lines.split())]}
    signed = ".".join(_encode(json.dumps(part).encode()) for part in (header, claims))
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_encode(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
