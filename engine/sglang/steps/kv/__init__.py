"""The KV cache: its type, its pools, who may switch it off. Source: SGLang 0.5.23, ``arg_groups/kv_cache_hook.py``."""
