"""The engine release that a container image's tag names."""

from __future__ import annotations

import re

_REPOSITORIES = frozenset({"sglang", "sgl-dev"})
"""Last parts of image names whose tags are engine releases: lmsysorg/sglang and its mirrors, rocm/sgl-dev. An image
that only contains the engine, such as ai-dynamo/sglang-runtime, counts its own releases."""

_TAG = re.compile(r"v?(\d{1,3}\.\d{1,3}\.\d{1,3}(?:[.-]?(?:post|rc)\d+)?)(?:[-_.+].*)?", re.ASCII)


def release_of(image: object) -> str | None:
    """The release in the tag; None where the image is another, or its tag (``latest``, ``dev``) names none.

    >>> release_of("lmsysorg/sglang:v0.5.20-cu126"), release_of("registry:5000/mirror/sglang:v0.5.21.post1@sha256:0f")
    ('0.5.20', '0.5.21.post1')
    >>> release_of("lmsysorg/sglang:latest"), release_of("nvcr.io/nvidia/ai-dynamo/sglang-runtime:0.7.0")
    (None, None)
    """
    if not isinstance(image, str):
        return None
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    found = _TAG.fullmatch(tag) if name in _REPOSITORIES else None
    return found.group(1) if found else None
