"""Write Dockerfile.base for a release of NVIDIA's image: `python tools/team_base.py 23.08 [--tag T] [--digest D]`"""

from __future__ import annotations

import argparse
import sys

from envlock.data.image_tables import load_image_tables
from envlock.image.bases.reference import parse
from envlock.image.plan import Base, base_plan
from envlock.image.render import dockerfile
from envlock.runtime.errors import UsageError

NAME = "nvcr.io/nvidia/tensorflow"
OLDEST = "22.12"


def main() -> None:
    """Print it, or say what is missing."""
    parser = argparse.ArgumentParser(
        description="Write Dockerfile.base for a release of NVIDIA's TensorFlow image."
    )
    parser.add_argument("release", help=f"YY.MM, from {OLDEST} on")
    parser.add_argument(
        "--tag", help="of a release with several images [default: the last, of TensorFlow 2]"
    )
    parser.add_argument("--digest", help="of the image, where the table has none")
    asked = parser.parse_args()
    rows = {row.release: row for row in load_image_tables().ngc.release if row.release >= OLDEST}
    if asked.release not in rows:
        parser.error(f"unknown release {asked.release}; choose from: {', '.join(rows)}")
    tag = asked.tag or rows[asked.release].tags[-1]
    if tag not in rows[asked.release].tags:
        parser.error(
            f"release {asked.release} has no tag {tag}; choose from: {', '.join(rows[asked.release].tags)}"
        )
    digest = asked.digest or known_digests().get(tag)
    if digest is None:
        name = f"{NAME}:{tag}"
        parser.error(
            f"no source gives the digest of {name}; name it with --digest (DIGEST= for make), as told by\n"
            f"  docker buildx imagetools inspect {name} --format '{{{{.Manifest.Digest}}}}'"
        )
    try:
        sys.stdout.write(base_dockerfile(tag, str(parse(f"{NAME}@{digest}").digest)))
    except UsageError as error:
        parser.error(str(error))


def known_digests() -> dict[str, str]:
    """Return the digest of each tag that is known in public, and that has not moved since."""
    return {
        row.tag: row.digest
        for row in load_image_tables().ngc.digest
        if row.tag is not None and not row.earlier
    }


def base_dockerfile(tag: str, digest: str) -> str:
    """Return the base for teams that starts from an image of NVIDIA's."""
    return dockerfile(base_plan(Base(f"{NAME}:{tag}@{digest}", "ngc")))


if __name__ == "__main__":
    main()
