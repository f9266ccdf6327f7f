"""A cache outside the server (``--enable-unified-cache-external-linker``)."""

from __future__ import annotations

from engine.sglang.resolution import Resolution
from engine.sglang.steps.refusals import invalid


def run(r: Resolution) -> bool:
    """Check it; True where it takes the hierarchical cache's place."""
    args = r.args
    config = args.unified_cache_external_linker_config
    if config is not None and not isinstance(config, dict):
        raise invalid("--unified-cache-external-linker-config must be a JSON object.")
    on = bool(args.enable_unified_cache_external_linker)
    if args.enable_linker_mla_dedup and (not on or args.unified_cache_external_linker_backend != "mooncake"):
        raise invalid("--enable-linker-mla-dedup requires the Mooncake linker.")
    if not on:
        return False
    option = "--enable-unified-cache-external-linker"
    if r.since(0, 5, 23) and (args.disable_radix_cache or args.radix_cache_backend is not None):
        raise invalid(f"{option} requires the default UnifiedRadixCache with radix caching enabled.")
    if args.enable_hierarchical_cache:
        raise invalid(f"{option} and --enable-hierarchical-cache are mutually exclusive.")
    if args.hicache_storage_backend is not None:
        raise invalid(f"{option} does not use --hicache-storage-backend.")
    return True
