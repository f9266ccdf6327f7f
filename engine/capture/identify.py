"""What captures run on here: ``python -m engine.capture.identify`` prints it as one JSON object.

``gpu`` (the driver's name of the first GPU) is null where torch can use none; ``memory_mib`` is that GPU's memory, or
what this machine, or its container, has; ``driver`` the NVIDIA driver's version; ``torch`` null where it is missing.
torch is loaded only where there is a GPU to ask it about.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path
from typing import Any

_DRIVER = Path("/sys/module/nvidia/version")
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def identify() -> dict[str, Any]:
    """See the module."""
    torch = _version("torch")
    gpu, memory = _gpu() if torch is not None and _has_gpu() else (None, None)
    return {
        "gpu": gpu,
        "memory_mib": _memory() if memory is None else memory,
        "driver": _DRIVER.read_text().strip() if gpu and _DRIVER.is_file() else None,
        "torch": torch,
    }


def _has_gpu() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


def _gpu() -> tuple[str | None, int | None]:
    import torch  # seconds: only where a GPU is there

    if not torch.cuda.is_available():
        return None, None
    found = torch.cuda.get_device_properties(0)
    return found.name, found.total_memory // 2**20


def _memory() -> int:
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in _LIMITS:
        text = limit.read_text().strip() if limit.is_file() else ""
        if text.isdigit():
            sizes.append(int(text))
    return min(sizes) // 2**20


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    print(json.dumps(identify()))
