"""Prefill context parallelism, and the widths that go with it."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.derived import connector_type
from engine.sglang.resolution import Resolution, Version
from engine.sglang.steps.parallel import cp_tp_sharing
from engine.sglang.steps.refusals import invalid, require, unguarded
from engine.sglang.versioned import FIRST, at

_NEMOTRON_TYPES = ("nemotron_h", "nemotron_h_puzzle")
_MIMO_V2 = ("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM")
_SECOND = "SGLANG_ENABLE_CP_V2"
_KIMI_K3 = frozenset({"KimiK3ForConditionalGeneration", "KimiK3LinearForCausalLM"})
_INKLING = frozenset({"InklingForConditionalGeneration", "InklingForConditionalGenerationMTP"})
_NO_INPUT_SCATTERING: tuple[tuple[Version, frozenset[str]], ...] = (
    ((0, 5, 23), _KIMI_K3 | _INKLING),
    ((0, 5, 22), _KIMI_K3),
    (FIRST, frozenset()),
)


@unguarded
def run(r: Resolution) -> None:
    """What the model's family allows, then the strategy, then the widths."""
    args = r.args
    if connector_type(args.model_path) != "instance":
        _family(r)
        if r.since(0, 5, 22):
            cp_tp_sharing.run(r)
    if args.enable_prefill_cp and args.cp_strategy is None:
        raise invalid("--cp-strategy must be set when --enable-prefill-cp is enabled.")
    old = args.__dict__  # the two flags are gone from 0.5.20 on
    if old.get("enable_prefill_context_parallel") and old.get("enable_dsa_prefill_context_parallel"):
        raise invalid(
            "--enable-prefill-context-parallel and --enable-nsa-prefill-context-parallel are mutually exclusive. Use "
            "--enable-nsa-prefill-context-parallel for DeepSeek V3.2 (NSA) models and "
            "--enable-prefill-context-parallel for MLA-based models (DeepSeek V3/R1, Kimi K2.5) or MHA/GQA-based "
            "models."
        )
    _widths(r)


def _family(r: Resolution) -> None:
    args, model = r.args, r.model
    kind, arch = model.text_model_type, model.arch
    if r.since(0, 5, 21):
        _boundaries(r, kind, arch)
    if not args.enable_prefill_cp:
        return
    if arch == "DeepseekV32ForCausalLM" and args.cp_strategy == "zigzag" and r.since(0, 5, 20):
        raise invalid("DeepSeek V3.2 prefill CP does not support --cp-strategy zigzag; use interleave.")
    # Until 0.5.19 it was the second of two implementations, and the default for these models.
    first = environ.is_set(r, _SECOND) and not environ.read(r, _SECOND) if environ.known(r, _SECOND) else False
    if arch in _MIMO_V2 and not first and r.since(0, 5, 16):
        title = "MiMo V2 prefill CP" if r.since(0, 5, 20) else "MiMo V2 CP-v2"
        if args.cp_strategy != "zigzag":
            raise invalid(f"{title} only supports --cp-strategy zigzag.")
        if model.is_multimodal and not args.language_only and not args.language_model_only:
            raise invalid(f"{title} only supports text inference; add --language-only.")


def _boundaries(r: Resolution, kind: str, arch: str) -> None:
    args = r.args
    nemotron = kind in _NEMOTRON_TYPES
    longcat = kind == "longcat_flash"
    if nemotron and args.attn_cp_size > 1:
        raise invalid("Nemotron-H does not support --attn-cp-size > 1")
    if longcat and args.enable_prefill_cp and args.attn_cp_size > 1:
        raise invalid("LongCat-Flash does not support --enable-prefill-cp with --attn-cp-size > 1")
    scattered = at(_NO_INPUT_SCATTERING, r.release.version)
    if args.enable_attn_tp_input_scattered and (nemotron or longcat or arch in scattered):
        name = arch if r.since(0, 5, 22) else kind
        r.warn(f"WARNING: Disabling input-scattered attention for {name}: its forward does not enter that scope")
        r.set("enable_attn_tp_input_scattered", False, f"{arch} does not enter that scope")


def _widths(r: Resolution) -> None:
    args = r.args
    fusion = "Aiter allreduce fusion is not supported with context parallelism"
    if args.attn_cp_size > 1:
        require(args.tp_size % args.attn_cp_size == 0, "tp_size must be divisible by attn_cp_size")
        require(
            args.tp_size % (args.attn_dp_size * args.attn_cp_size) == 0,
            f"tp_size must be divisible by {'attn_dp_size' if r.since(0, 5, 22) else 'dp_size'} * attn_cp_size",
        )
        require(not args.enable_aiter_allreduce_fusion, fusion)
    if args.moe_dp_size > 1:
        require(args.tp_size % args.moe_dp_size == 0, "tp_size must be divisible by moe_dp_size")
        require(
            args.ep_size * args.moe_dp_size <= args.tp_size,
            "ep_size * moe_dp_size must be less than or equal to tp_size",
        )
        require(args.pp_size == 1, "PP is not supported with context parallelism")
        if args.ep_size > 1:
            require(args.ep_size * args.moe_dp_size == args.tp_size, "ep_size * moe_dp_size must be equal to tp_size")
        require(not args.enable_aiter_allreduce_fusion, fusion)
    if args.attn_cp_size != args.moe_dp_size:
        require(args.moe_dp_size == 1, "attn_cp_size != moe_dp_size is only supported when moe_dp_size == 1")
