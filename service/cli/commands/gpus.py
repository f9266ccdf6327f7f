"""The GPUs that are known, by the names that --gpu takes."""

from __future__ import annotations

import argparse

from engine.hardware import all_gpus
from service.cli.tables import add_format, document, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this command."""
    add_format(parser)


def run(asked: argparse.Namespace) -> int:
    """Print the list."""
    gpus = all_gpus()
    if asked.format == "json":
        print(document({"gpus": [gpu.to_dict() for gpu in gpus]}))
        return 0
    rows = [
        (gpu.name, ".".join(map(str, gpu.capability)), f"{gpu.memory_mib:,}", ", ".join((gpu.product, *gpu.aliases)))
        for gpu in gpus
    ]
    print(table(("GPU", "capability", "MiB", "also named"), rows))
    return 0
