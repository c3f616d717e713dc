"""What an index shows of a release: links to the repository, and README.md without the files beside it.

Hatchling loads this file while it builds (`[tool.hatch.metadata.hooks.custom]` in pyproject.toml), so that it imports
nothing but the standard library and hatchling.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = ""
"""The public address of the repository, such as https://HOST/OWNER/envlock. The first release sets it.

Without it a release has no links, and the description of its page none that are relative.
"""

LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)")
ABSOLUTE = re.compile(r"[a-z]+:|#")
"""How a target begins that leads somewhere from any page."""


def list_urls(repository: str) -> dict[str, str]:
    """Return the links of the project's page by their labels; none without a repository."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/tree/main/docs",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def render_description(readme: str, repository: str, version: str) -> str:
    """Return a README whose relative links lead to the files of a version.

    Without a repository a relative link is its text alone, and a picture that is a file is left out.
    """

    def replace(link: re.Match[str]) -> str:
        if ABSOLUTE.match(link["target"]):
            return link[0]
        if repository:
            # A page shows a picture only from the address of its bytes.
            kind = "raw" if link["picture"] else "blob"
            return f"{link['picture']}[{link['text']}]({repository}/{kind}/v{version}/{link['target']})"
        if link["picture"]:
            return ""
        return link["text"]

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(replace, readme))


def read_version(root: Path) -> str:
    """Return the version that a checkout has."""
    code = (root / "envlock/runtime/version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"', code, re.MULTILINE)
    if found is None:
        raise ValueError("envlock/runtime/version.py has no line `__version__ = ...`")
    return found[1]


class CustomMetadataHook(MetadataHookInterface):
    """Fills what pyproject.toml calls dynamic; hatchling looks for a class of this name."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the long description and the links."""
        root = Path(self.root)
        readme = (root / "README.md").read_text(encoding="utf-8")
        text = render_description(readme, REPOSITORY, read_version(root))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = list_urls(REPOSITORY)
