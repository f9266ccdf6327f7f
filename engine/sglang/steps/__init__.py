"""The resolution pipeline of SGLang: one decision, one file; the order stands in :mod:`engine.sglang.steps.order`."""
