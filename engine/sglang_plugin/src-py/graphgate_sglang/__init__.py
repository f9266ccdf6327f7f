"""graphgate's guard inside SGLang, loaded by the engine through the entry point ``sglang.srt.plugins``."""

from graphgate_sglang.plugin import register as register
