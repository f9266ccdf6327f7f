"""What is read from the text of a release's sources: architectures' names, and lists that stand inside functions.

Until 0.5.14 some lists of architectures were no tables; the source's syntax tree tells which names a branch on the
model's architecture compares with.
"""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RADIX_CALLS = ("_handle_mamba_radix_cache", "apply_nemotron_h_defaults")
FUSION = "flashinfer_allreduce_fusion_backend"


def architecture_names(root: Path) -> list[str]:
    """Every string in the engine's sources that looks like an architecture."""
    pattern = re.compile(
        r"[\"']((?:[A-Z]\w*(?:For[A-Z]\w+|Model|LMHeadModel|MTP|NextN|DSpark|ChatModel))|MiniCPM[OV]\w*|"
        r"\w+_V[23]|Contriever|\w+CausalLM\w*|\w+ModelLM|\w+Moe\w*LM)[\"']"
    )
    found: set[str] = set()
    for folder in ("configs", "arg_groups", "models"):
        for path in (root / folder).rglob("*.py"):
            found |= set(pattern.findall(path.read_text(encoding="utf-8")))
    for path in (root / "models").rglob("*.py"):
        found |= set(re.findall(r"^class (\w+)\(", path.read_text(encoding="utf-8"), re.M)) & found
    for path in root.glob("*.py"):
        found |= set(pattern.findall(path.read_text(encoding="utf-8")))
    return sorted(found)


def inline_tables(root: Path, names: list[str], record: Any) -> dict[str, list[str]]:
    """``mamba_radix_cache``, ``mamba_extra_buffer`` and ``allreduce_fusion``, under the names of the later tables.

    ``root`` is the folder of the release's ``server_args.py``, ``names`` every architecture that it knows, ``record``
    its argument record.
    """
    tree = ast.parse((root / "server_args.py").read_text(encoding="utf-8"))
    adjustments = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "_handle_model_specific_adjustments"
    )
    probe = types.SimpleNamespace(linear_attn_backend="triton")
    return {
        "mamba_radix_cache": sorted(_branches_calling(adjustments)),
        "mamba_extra_buffer": [n for n in names if record._support_mamba_cache_extra_buffer(probe, n)],
        "allreduce_fusion": sorted(_fused(adjustments)),
    }


def _branches_calling(function: ast.FunctionDef) -> set[str]:
    """The architectures in whose innermost branch one of the calls stands."""
    found: set[str] = set()

    def visit(node: ast.AST, branch: set[str]) -> None:
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in RADIX_CALLS:
                found.update(branch)
        if isinstance(node, ast.If):
            inner = set(_compared(node.test)) or branch
            for statement in node.body:
                visit(statement, inner)
            for statement in node.orelse:
                visit(statement, branch)
            return
        for child in ast.iter_child_nodes(node):
            visit(child, branch)

    visit(function, set())
    return found


def _fused(function: ast.FunctionDef) -> set[str]:
    """The architectures for which the fused all-reduce is switched on."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and any(_assigns(child, FUSION, "auto") for child in node.body):
            return set(_compared(node.test))
    return set()


def _assigns(node: ast.AST, attribute: str, value: str) -> bool:
    return (
        isinstance(node, ast.Assign)
        and getattr(node.targets[0], "attr", "") == attribute
        and isinstance(node.value, ast.Constant)
        and node.value.value == value
    )


def _compared(test: ast.AST) -> Iterator[str]:
    """The texts that ``model_arch`` is compared with in a condition."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and getattr(node.left, "id", "") == "model_arch":
            for constant in ast.walk(node.comparators[0]):
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                    yield constant.value
