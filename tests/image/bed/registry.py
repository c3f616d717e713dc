"""A registry that answers as nvcr.io and docker.io: Debian's docker-registry, with a token server before it."""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.client
import http.server
import json
import re
import secrets
import socket
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tests.image.bed import certificates
from tests.image.bed.debian import BedError
from tests.image.bed.images import Image

PACKAGES = ["docker-registry/bookworm"]
USER, KEY = "$oauthtoken", "the-only-key"
"""As for nvcr.io, the user's name is this word and the key is what counts. With them everything is allowed."""

HOSTS = ("nvcr.io", "registry-1.docker.io", "docker.io")
PUBLIC = re.compile(r"nvidia/|library/")
"""What anybody may pull: repositories whose name begins so."""

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
KINDS = (MANIFEST, INDEX, "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json")


def configuration(folder: Path, address: str, tokens_address: str) -> str:
    """Return docker-registry's configuration; its files lie in `folder`.

    The token server has no name: with BuildKit it is the client that asks it, outside the engine's name space.
    """
    return f"""\
version: 0.1
log: {{level: warn}}
storage: {{filesystem: {{rootdirectory: {folder}/data}}, delete: {{enabled: true}}}}
http: {{addr: "{address}:443", secret: bed, tls: {{certificate: {folder}/server.crt, key: {folder}/server.key}}}}
auth:
  token: {{realm: "https://{tokens_address}/token", service: bed, issuer: bed, rootcertbundle: {folder}/ca.crt}}
"""


class Reply(NamedTuple):
    """An answer that was read."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Registry:
    """The registry, by its address: outside the bed's name space no name leads to it.

    Attributes:
        address, tokens_address: where it and its token server listen, port 443.
        ca: the certificate authority to trust.
    """

    address: str
    tokens_address: str
    ca: Path

    def wait(self) -> None:
        """Return when both servers answer.

        Raises:
            BedError: they did not within ten seconds.
        """
        limit = time.monotonic() + 10
        for address in (self.address, self.tokens_address):
            while True:
                try:
                    socket.create_connection((address, 443), timeout=10).close()
                    break
                except OSError as error:
                    if time.monotonic() > limit:
                        raise BedError(f"the registry does not answer at {address}: {error}") from None
                    time.sleep(0.02)

    def push(self, repository: str, tag: str, *images: Image) -> str:
        """Push an image, or an index of one per platform, and return its digest, which depends on the content only."""
        manifests = [self._push_image(repository, image) for image in images]
        if len(images) == 1:
            body, kind = manifests[0], MANIFEST
        else:
            entries = [
                {
                    "mediaType": MANIFEST,
                    "size": len(manifest),
                    "digest": digest(manifest),
                    "platform": {"architecture": image.architecture, "os": "linux"},
                }
                for image, manifest in zip(images, manifests, strict=True)
            ]
            body = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
            kind = INDEX
        for manifest in manifests if len(images) > 1 else []:
            self._ask("PUT", repository, f"manifests/{digest(manifest)}", manifest, MANIFEST)
        self._ask("PUT", repository, f"manifests/{tag}", body, kind)
        return digest(body)

    def read(self, repository: str, path: str) -> bytes:
        """Return a manifest or a blob, as who has the key."""
        return self._ask("GET", repository, path).body

    def delete(self, repository: str, reference: str) -> None:
        """Delete a manifest by its digest, as a publisher who cleans up does."""
        self._ask("DELETE", repository, f"manifests/{reference}")

    def _push_image(self, repository: str, image: Image) -> bytes:
        config = image.config()
        self._push_blob(repository, digest(config), config)
        for layer in image.layers:
            with layer.file.open("rb") as stream:
                self._push_blob(repository, layer.digest, stream)
        kind = "application/vnd.docker.container.image.v1+json"
        layers = [
            {
                "mediaType": "application/vnd.docker.image.rootfs.diff.tar",
                "size": layer.file.stat().st_size,
                "digest": layer.digest,
            }
            for layer in image.layers
        ]
        entry = {"mediaType": kind, "size": len(config), "digest": digest(config)}
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": entry, "layers": layers}
        return json.dumps(document).encode()

    def _push_blob(self, repository: str, name: str, content: bytes | BinaryIO) -> None:
        if self._ask("HEAD", repository, f"blobs/{name}", missing_ok=True).status == 200:
            return
        place = self._ask("POST", repository, "blobs/uploads/").headers["Location"]
        parts = urllib.parse.urlsplit(place)
        self._send("PUT", f"{parts.path}?{parts.query}&digest={name}", repository, content, "application/octet-stream")

    def _ask(
        self,
        verb: str,
        repository: str,
        path: str,
        body: bytes | None = None,
        kind: str | None = None,
        *,
        missing_ok: bool = False,
    ) -> Reply:
        return self._send(verb, f"/v2/{repository}/{path}", repository, body, kind, missing_ok=missing_ok)

    def _send(
        self,
        verb: str,
        path: str,
        repository: str,
        body: bytes | BinaryIO | None,
        kind: str | None,
        *,
        missing_ok: bool = False,
    ) -> Reply:
        claims = claims_for([f"repository:{repository}:pull,push,delete"], known=True)
        headers = {"Accept": ", ".join(KINDS), "Authorization": f"Bearer {certificates.token(self.ca.parent, claims)}"}
        if kind:
            headers["Content-Type"] = kind
        if body is not None and not isinstance(body, bytes):
            headers["Content-Length"] = str(Path(body.name).stat().st_size)
        trust = ssl.create_default_context(cafile=str(self.ca))
        connection = http.client.HTTPSConnection(self.address, 443, context=trust, timeout=60)
        try:
            connection.request(verb, path, body=body, headers=headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 400 and not (missing_ok and answer.status == 404):
            raise BedError(f"the registry says {answer.status} to {verb} {path}: {text.decode(errors='replace')}")
        return Reply(answer.status, dict(answer.headers), text)


def digest(data: bytes) -> str:
    """Return the digest of a blob or manifest."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def claims_for(scopes: list[str], *, known: bool) -> dict[str, Any]:
    """Return what a token grants: all that is asked to those who have the key, pulls of public ones to others."""
    access = []
    for scope in scopes:
        kind, _, rest = scope.partition(":")
        name, _, actions = rest.rpartition(":")
        granted = [a for a in actions.split(",") if known or (a == "pull" and PUBLIC.match(name))]
        access.append({"type": kind, "name": name, "actions": granted})
    now = int(time.time())
    return {
        "iss": "bed",
        "aud": "bed",
        "sub": USER if known else "",
        "jti": secrets.token_hex(8),
        "iat": now,
        "nbf": now - 60,
        "exp": now + 300,
        "access": access,
    }


def _handler(folder: Path) -> type[http.server.BaseHTTPRequestHandler]:
    class Tokens(http.server.BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
            scopes = [scope for value in query.get("scope", []) for scope in value.split()]
            given = self.headers.get("Authorization")
            known = given == f"Basic {base64.b64encode(f'{USER}:{KEY}'.encode()).decode()}"
            if given and not known:
                self._answer(401, {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]})
            else:
                signed = certificates.token(folder, claims_for(scopes, known=known))
                self._answer(200, {"token": signed, "expires_in": 300})

        def do_POST(self) -> None:
            """Docker asks by POST first and takes this for "not here"."""
            self._answer(405, {})

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the parent's name)
            print(format % args, flush=True)

    return Tokens


def serve_tokens(folder: Path, address: str) -> None:
    """Give tokens until killed."""
    server = http.server.ThreadingHTTPServer((address, 443), _handler(folder))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


def main() -> None:
    """Serve tokens: `python -m tests.image.bed.registry FOLDER ADDRESS`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("address")
    asked = parser.parse_args()
    serve_tokens(asked.folder, asked.address)


if __name__ == "__main__":
    main()
