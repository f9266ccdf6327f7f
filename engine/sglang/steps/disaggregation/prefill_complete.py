"""The allocation policy ``prefill_complete``: what it does not work with yet."""

from __future__ import annotations

from engine.sglang import environ
from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid


def check(r: Resolution) -> None:
    """Refuse with every reason at once, as the engine does."""
    args = r.args
    mode = args.disaggregation_mode
    attention_dp = args.dp_size if args.enable_dp_attention else 1
    reasons = [
        (mode not in ("prefill", "decode"), "aggregated serving"),
        (args.disaggregation_transfer_backend != "mooncake", "transfer backends other than Mooncake"),
        (
            args.pp_size != 1 or args.attn_cp_size != 1 or args.dcp_size != 1,
            "pipeline or attention context parallelism",
        ),
        (args.tp_size != attention_dp, "attention tensor parallelism greater than one"),
        (args.enable_pdmux or args.decoupled_spec_role != "null", "PD multiplexing or decoupled speculation"),
        (args.enable_pd_role_switch, "runtime PD role switching"),
        (args.encoder_only or args.language_only, "encoder disaggregation"),
        (args.enable_hisparse, "HiSparse"),
        (args.disaggregation_decode_host_receive_threshold < 1, "decode host KV buffering"),
        (
            mode == "decode" and (args.disaggregation_decode_enable_radix_cache or args.enable_hierarchical_cache),
            "decode radix cache or decode HiCache",
        ),
        (
            mode == "prefill"
            and args.enable_hierarchical_cache
            and (args.hicache_storage_backend is not None or args.hicache_write_policy != "write_back"),
            "prefill HiCache other than L2 write_back",
        ),
        (environ.read(r, "SGLANG_DISAGG_STAGING_BUFFER"), "staging buffers"),
        (environ.read(r, "SGLANG_RUST_SERVER"), "the Rust bootstrap registry"),
    ]
    found = [text for holds, text in reasons if holds]
    if found:
        raise invalid(
            "--disaggregation-decode-allocation-policy prefill_complete does not yet support " + ", ".join(found)
        )
