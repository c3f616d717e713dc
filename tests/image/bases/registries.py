"""A registry of a few images on 127.0.0.1, that can want tokens or passwords and can lie."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.packages.web.hostile import Request, answer

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
ENVIRON = [
    "TENSORFLOW_VERSION=2.17.0",
    "CUDA_VERSION=12.8.0.038",
    "CUDNN_VERSION=9.7.1.26",
    "NCCL_VERSION=2.25.1",
    "A=b=c",
]


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def encode(document: Any) -> bytes:
    return json.dumps(document, indent=3).encode()


def config(architecture: str = "amd64", **changes: Any) -> dict[str, Any]:
    """Return the config of an image as NVIDIA's are."""
    inner = {
        "Env": ENVIRON,
        "Labels": {"com.nvidia.build.id": "1"},
        "Entrypoint": ["/opt/entry.sh"],
        "Cmd": None,
        "User": "",
    }
    return {
        "os": "linux",
        "architecture": architecture,
        "config": {**inner, **changes},
        "rootfs": {"diff_ids": ["sha256:1"]},
    }


@dataclass
class Shelf:
    """The content of one repository: documents by tag and digest.

    `wants` is asked what a request must show: None for nothing, else the header WWW-Authenticate of a refusal.
    """

    repository: str = "nvidia/tensorflow"
    documents: dict[str, bytes] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    wants: Callable[[Request], str | None] = lambda request: None
    token: Callable[[Request], bytes] = lambda request: answer(b"", "404 Not Found")

    def put(self, document: Any, kind: str, *tags: str) -> str:
        """Add a document; return its digest."""
        data = document if isinstance(document, bytes) else encode(document)
        for name in (digest_of(data), *tags):
            self.documents[name] = data
            self.types[name] = kind
        return digest_of(data)

    def image(self, *tags: str, architecture: str = "amd64", **changes: Any) -> str:
        """Add an image for one platform; return the digest of its manifest."""
        inner = self.put(config(architecture, **changes), "application/octet-stream")
        layers = [{"digest": "sha256:" + "1" * 64, "size": 10**10}]
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": {"digest": inner}, "layers": layers}
        return self.put(manifest, MANIFEST, *tags)

    def index(self, *tags: str, **platforms: str) -> str:
        """Add an index of manifests by architecture; return its digest."""
        rows = [
            {"digest": digest, "platform": {"os": "linux", "architecture": architecture}}
            for architecture, digest in platforms.items()
        ]
        extra = {"digest": "sha256:" + "2" * 64, "platform": {"os": "unknown", "architecture": "unknown"}}
        return self.put({"schemaVersion": 2, "mediaType": INDEX, "manifests": [*rows, extra]}, INDEX, *tags)

    def reply(self, request: Request, sock: socket.socket) -> None:
        """Answer as a registry does."""
        path = urlsplit(request.path).path
        if path == "/token":
            sock.sendall(self.token(request))
            return
        refusal = self.wants(request)
        if refusal is not None:
            sock.sendall(answer(b"{}", "401 Unauthorized", WWW_Authenticate=refusal))
            return
        kind, _, name = path.removeprefix(f"/v2/{self.repository}/").partition("/")
        data = self.documents.get(name) if kind in ("manifests", "blobs") else None
        if path == "/v2/":
            sock.sendall(answer(b"{}"))
        elif data is None:
            sock.sendall(answer(b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}', "404 Not Found"))
        else:
            sock.sendall(answer(data, Content_Type=self.types[name], Docker_Content_Digest=digest_of(data)))


def bearer(realm: str, token: str = "let.me-in", **more: str) -> Callable[[Request], str | None]:
    """Return what wants a token from `realm`, as nvcr.io does."""
    values = {"realm": realm, "scope": "repository:nvidia/tensorflow:pull,push", **more}
    header = "Bearer " + ",".join(f'{name}="{value}"' for name, value in values.items())
    return lambda request: None if request.headers.get("authorization") == f"Bearer {token}" else header


def basic(user: str, password: str) -> Callable[[Request], str | None]:
    """Return what wants user and password."""
    wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    return lambda request: None if request.headers.get("authorization") == wanted else 'Basic realm="a registry"'


def query(request: Request) -> dict[str, list[str]]:
    """Return what a request asks for behind the question mark."""
    return parse_qs(urlsplit(request.path).query)
