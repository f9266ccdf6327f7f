"""Arguments whose values are known in the cluster only: which of them matter.

A value that nothing reads on the way to the graphs may be anything: the option is left out. A value that is read is
not guessed.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import InvalidLaunch
from engine.sglang.options import Option
from engine.sglang.predict import bearing
from engine.sglang.releases import Release

_ANY_VALUE = frozenset(
    {
        "admin_api_key",
        "api_key",
        "disaggregation_bootstrap_port",
        "disaggregation_ib_device",
        "export_metrics_to_file_dir",
        "grpc_port",
        "mooncake_ib_device",
        "node_rank",
        "port",
        "remote_instance_weight_loader_seed_instance_ip",
        "remote_instance_weight_loader_seed_instance_service_port",
        "revision",
        "served_model_name",
        "ssl_ca_certs",
        "ssl_certfile",
        "ssl_keyfile",
        "ssl_keyfile_password",
        "tokenizer_path",
        "watermark_key",
        "watermark_key_b",
    }
)
"""Arguments that the engine reads on the way, for checks that any sensible value passes: graphs are the same."""


def without_unknown(words: Sequence[str], unknown: Sequence[str], release: Release) -> tuple[str, ...]:
    """The words without the options whose unknown values do not matter.

    Raises:
        InvalidLaunch: an unknown value matters; the message names the option.
    """
    if not unknown:
        return tuple(words)
    out: list[str] = []
    at = 0
    while at < len(words):
        name, inline, _ = words[at].partition("=")
        option = _option(name, release)
        end = at + (1 if inline else _length(option, words[at + 1 :]))
        taken = words[at:end]
        mark = next((mark for mark in unknown for word in taken if mark in word), None)
        if mark is None:
            out.extend(taken)
        elif option is None or not _any_value(option):
            where = f"The value of {name}" if option is not None else "A part of the command"
            raise InvalidLaunch(
                f"{where} is {mark}, which is not in the manifest.",
                remedy="Write the value into the manifest; it is not guessed.",
                field="arguments",
            )
        elif option.type == "str" and option.choices is None:
            out.extend(taken)  # that the option is set may matter, to what does not
        at = end
    return tuple(out)


def _option(name: str, release: Release) -> Option | None:
    """The option of that name, or the only one whose name begins so, as the engine's parser takes it."""
    table = release.options
    known = table.by_string.get(name)
    if known is None and name.startswith("--"):
        meant = {id(option): option for option in map(table.by_string.__getitem__, table.beginning_with(name))}
        known = meant.popitem()[1] if len(meant) == 1 else None
    return known


def _any_value(option: Option) -> bool:
    return option.dest in _ANY_VALUE or option.dest not in bearing()


def _length(option: Option | None, behind: Sequence[str]) -> int:
    """How many words an option takes, itself included; one that is not known takes no others."""
    if option is None or option.nargs == 0:
        return 1
    values = next((index for index, word in enumerate(behind) if word.startswith("--")), len(behind))
    if option.nargs in (None, "?"):
        return 1 + min(1, values)
    return 1 + (min(option.nargs, values) if isinstance(option.nargs, int) else values)
