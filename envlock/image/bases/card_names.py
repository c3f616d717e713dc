"""The name of a GPU by what counts: drivers, shops and people write it in many ways. Pure."""

from __future__ import annotations

import re

_AROUND = re.compile(r"^gpu \d+:|\(uuid:.*|\bmig\b.*|(?<=\w)[dlmx]{0,2}(-\d+){1,2}[abcq](me)?$")
"""What stands around the name: in `nvidia-smi -L`, and for a part, as `MIG 1g.10gb` or the `-16Q` of
a virtual GPU.
"""
_SIZE = re.compile(r"\b\d+ ?gi?b?\b")
_WORDS = re.compile(
    r"\b(nvidia|corporation|geforce|tesla|grid|graphics|gpu|card|tegra|jetson|agx|dgxs?|hgx|nvgpu|"
    r"developer kit|module|tensor core|laptop|notebook|mobile|embedded|desktop|workstation|server|with|design|"
    r"max q|generation|gen|edition|series|refresh|oem|engineering sample|rev \w+|lite hash rate|mac|pcie?|pci e|sxm\d?|nvl\d*|"
    r"mxm|hbm\d?e?|gddr\d?x?|fhhl|sff|ls|ac|lc|cnx|active)\b"
)


def simplify_name(name: str) -> str:
    """Return what tells a GPU from others in its name: without vendor, form, memory and partition.

    A Quadro keeps its brand before `RTX` and a bare number: RTX 6000 is the name of three GPUs.
    """
    text = _AROUND.sub(" ", name.lower().strip())
    text = " ".join(re.sub(r"\((r|tm)\)|[^a-z0-9]", " ", text).split())
    text = re.sub(r"\bgrid (?=rtx ?\d)", "quadro ", text)
    text = " ".join(_SIZE.sub(" ", _WORDS.sub(" ", _SIZE.sub(" ", text))).split())
    text = re.sub(r"\bquadro (?!rtx ?\d|\d+$)", "", text)
    # Only these are Blackwell: the word tells nothing there, but with others it would.
    return re.sub(r"\b(pro \d+) blackwell\b", r"\1", text).replace(" ", "")
