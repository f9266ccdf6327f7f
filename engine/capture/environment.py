"""The environment of a worker process: named variables, and nothing else of what the supervisor's process has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

MARK = "CAPTURE_OF_GRAPHGATE"
"""The variable that every process of a capture carries: the capture's folder."""

KEPT = frozenset(
    (
        *("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_NUMERIC", "TZ", "LD_LIBRARY_PATH", "SYSTEMROOT"),
        *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_HOME", "CUDA_PATH", "CUDA_MODULE_LOADING"),
        *("CUDA_LAUNCH_BLOCKING", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
        *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "TORCH_CUDA_ARCH_LIST"),
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    )
)
"""Paths, locale, GPU and thread settings: no variable of this list is a place where people keep secrets."""


def worker_environment(environment: Mapping[str, str], *, folder: Path, import_root: Path) -> dict[str, str]:
    """What of ``environment`` a worker gets; its home and its temporary files are in ``folder``, which is removed."""
    kept = {name: value for name, value in environment.items() if name in KEPT}
    own = {"HOME": str(folder), "TMPDIR": str(folder), MARK: str(folder)}
    return {**kept, **own, "PYTHONPATH": str(import_root), "PYTHONUNBUFFERED": "1"}
