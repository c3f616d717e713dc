"""An index of our own, and a client that loses patience within fractions of a second."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from envlock.packages.web.client import CA_VARIABLES, Client
from envlock.packages.web.limits import Limits
from tests.packages.server import IndexServer, index_server

QUICK = Limits(connect=1, silence=0.5, answer=1.5, body=2.0, attempts=3, backoff=0.01, retry_after=0.2)


@pytest.fixture(autouse=True)
def _no_certificates_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading them takes 20 ms a client, and no server here has one that they would trust."""
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda context: None)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[IndexServer]:
    """Return a running index of the files in `tmp_path / "index"`."""
    folder = tmp_path / "index"
    folder.mkdir()
    with index_server(folder) as server:
        yield server


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return a client with short limits, and nothing of this machine's proxies and certificates."""
    for name in (*CA_VARIABLES, "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return Client(limits=QUICK)
