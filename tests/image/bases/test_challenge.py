"""The header WWW-Authenticate, as registries write it and as they should not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from envlock.image.bases.registry import LONGEST, Challenge, parse_challenges

REALM = "https://nvcr.io/proxy_auth"


def test_the_ways_in_that_a_header_offers() -> None:
    ways = {
        f'Bearer realm="{REALM}",scope="repository:nvidia/tensorflow:pull,push"': [
            Challenge("bearer", {"realm": REALM, "scope": "repository:nvidia/tensorflow:pull,push"})
        ],
        f'bearer  Realm = "{REALM}" , service=registry': [Challenge("bearer", {"realm": REALM, "service": "registry"})],
        f'Basic realm="a, b", Bearer realm="{REALM}"': [
            Challenge("basic", {"realm": "a, b"}),
            Challenge("bearer", {"realm": REALM}),
        ],
        'Bearer realm="a\\"b\\\\c"': [Challenge("bearer", {"realm": 'a"b\\c'})],
        "Negotiate": [Challenge("negotiate", {})],
        'Bearer realm="a",realm="b"': [Challenge("bearer", {"realm": "a"})],
        'realm="a"': [],
        "": [],
        'Bearer realm="a" \x00, service="b"': [Challenge("bearer", {"realm": "a"})],
        'Bearer realm="not closed': [Challenge("bearer", {}), Challenge("realm", {})],
        "Bearer " + "a=b," * LONGEST: [],
    }
    assert {header: parse_challenges(header) for header in ways} == ways


@given(st.text(alphabet='Bb a=",\\\n\t(', max_size=60) | st.text(max_size=60))
def test_any_header_is_read_and_ends(header: str) -> None:
    assert all(challenge.scheme == challenge.scheme.lower() for challenge in parse_challenges(header))
