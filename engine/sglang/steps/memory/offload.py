"""Which offloading options exclude each other."""

from __future__ import annotations

from engine.sglang.resolution import Refusal, Resolution


def run(r: Resolution) -> None:
    """Refuse PLE offload together with layer offload. Runs twice: models may switch PLE offload on in between."""
    args = r.args
    if args.ple_offload_embedding and (args.cpu_offload_gb > 0 or args.offload_group_size > 0):
        raise Refusal(
            "ValueError",
            "--ple-offload-embedding cannot be combined with --cpu-offload-gb or --offload-group-size: generic layer "
            "offload would stage the pinned PLE embedding back to the device.",
        )
    if args.ple_offload_backend == "file" and args.ple_offload_embedding is False:
        raise Refusal(
            "ValueError",
            "--ple-offload-backend file requires --ple-offload-embedding: "
            "the file-backed table is the offloaded table.",
        )
