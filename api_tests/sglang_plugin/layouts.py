"""The files of small engines, laid out as SGLang's releases are where the plugin looks.

They resolve nothing but the prefill backend, and a later step that may switch it off. Three layouts: ``arguments``
(0.5.16 to 0.5.18: methods of ``ServerArgs``, values kept there), ``runner`` (0.5.15: the same, with
``mambaish_config`` on the model runner) and ``pipeline`` (0.5.19 and newer: functions of ``arg_groups``, values
declared and read through a view).
"""

from __future__ import annotations

from collections.abc import Mapping

COMMON = {
    "sglang/__init__.py": "__version__ = {release!r}\n",
    "sglang/srt/__init__.py": "",
    "sglang/srt/layers/__init__.py": "",
    "sglang/srt/layers/attention/__init__.py": "",
    "sglang/srt/configs/__init__.py": "",
    "sglang/srt/model_executor/__init__.py": "",
    "sglang/srt/model_executor/runner/__init__.py": "",
    "sglang/srt/arg_groups/__init__.py": "",
    "sglang/srt/models/__init__.py": "",
    "torch/__init__.py": """
class cuda:
    get_device_name = staticmethod(lambda index: "NVIDIA H200")
    device_count = staticmethod(lambda: 8)
    is_available = staticmethod(lambda: __import__("os").environ.get("NO_GPU") is None)
""",
    "sglang/srt/plugins/__init__.py": """
import logging
from importlib.metadata import entry_points
from sglang.srt.plugins.hook_registry import HookRegistry

def load_plugins():
    for found in entry_points(group="sglang.srt.plugins"):
        try:
            found.load()()
        except Exception:
            logging.getLogger(__name__).exception("Failed to execute general plugin: %s", found.name)
    HookRegistry.apply_hooks()
""",
    "sglang/srt/plugins/hook_registry.py": """
import enum, logging, pkgutil

class HookType(enum.Enum):
    AFTER = "after"

class HookRegistry:
    hooks = []

    @classmethod
    def register(cls, target, hook, kind=HookType.AFTER):
        cls.hooks.append((target, hook))

    @classmethod
    def apply_hooks(cls):
        for target, hook in cls.hooks:
            try:
                path, _, name = target.rpartition(".")
                owner = pkgutil.resolve_name(path)
                original = getattr(owner, name)
                def wrapper(*args, **kwargs):
                    result = original(*args, **kwargs)
                    changed = hook(result, *args, **kwargs)
                    return result if changed is None else changed
                setattr(owner, name, wrapper)
            except Exception:
                logging.getLogger(__name__).exception("Failed to apply hooks to %s", target)
""",
    "sglang/srt/configs/linear_attn_model_registry.py": """
REGISTERED = []

def get_linear_attn_config(config):
    return next(((spec, config) for spec in REGISTERED if isinstance(config, spec)), None)
""",
    "sglang/srt/configs/models.py": """
class Config:
    def __init__(self, architecture):
        self.architectures = [architecture]

class LlamaConfig(Config): pass
class Qwen3NextConfig(Config): pass
class InklingMMConfig(Config): pass

def model_config(name):
    import types
    if name.startswith("acme"):
        from acme_models import AcmeConfig
        return types.SimpleNamespace(hf_config=AcmeConfig("AcmeForCausalLM"))
    if "next" in name.lower():
        return types.SimpleNamespace(hf_config=Qwen3NextConfig("Qwen3NextForCausalLM"))
    if "inkling" in name:
        return types.SimpleNamespace(hf_config=InklingMMConfig("InklingForConditionalGeneration"))
    if "broken" in name:
        raise OSError("this model has no configuration")
    return types.SimpleNamespace(hf_config=LlamaConfig("LlamaForCausalLM"))
""",
    "sglang/srt/models/registry.py": """
import importlib, os
importlib.import_module(os.environ["SGLANG_EXTERNAL_MODEL_PACKAGE"])
""",
    "acme_models/__init__.py": """
from sglang.srt.configs.linear_attn_model_registry import REGISTERED
from sglang.srt.configs.models import Config

class AcmeConfig(Config): pass

REGISTERED.append(AcmeConfig)
""",
    "sglang/srt/model_executor/cuda_graph_config.py": """
from dataclasses import dataclass, field

@dataclass
class PhaseConfig:
    backend: str = "breakable"
    bs: list | None = None

@dataclass
class CudaGraphConfig:
    decode: PhaseConfig = field(default_factory=lambda: PhaseConfig("full"))
    prefill: PhaseConfig = field(default_factory=PhaseConfig)
""",
    "sglang/srt/model_executor/runner/prefill_cuda_graph_runner.py": "class PrefillCudaGraphRunner: pass\n",
    "sglang/srt/model_executor/runner/decode_cuda_graph_runner.py": """
def prepare(backend):
    backend.init_cuda_graph_state(8, 8)
""",
    "sglang/srt/layers/attention/hybrid_linear_attn_backend.py": """
class MambaAttnBackendBase:
    def __init__(self):
        self.state_indices_list = []
        self.query_start_loc_list = []
        self.seen = []

    def init_cuda_graph_state(self, max_bs, max_num_tokens):
        self.state_indices_list += [[0] * (i + 1) for i in range(max_bs)]
        self.query_start_loc_list += [[0] * (i + 2) for i in range(max_bs)]

    def _replay_metadata(self, bs, req_pool_indices, forward_mode, spec_info=None, num_padding=None):
        if spec_info == "fails":
            return req_pool_indices[99]
        self.state_indices_list[bs - 1][0] = req_pool_indices[0]
        return self.query_start_loc_list[bs - 1]

class GDNAttnBackend(MambaAttnBackendBase):
    def _capture_metadata(self, bs, req_pool_indices, forward_mode, spec_info):
        return self.query_start_loc_list[bs - 1]
""",
}

MAMBAISH = """
from sglang.srt.configs.linear_attn_model_registry import get_linear_attn_config
from sglang.srt.configs.models import InklingMMConfig, Qwen3NextConfig

def mambaish_config(model_config):
    config = model_config.hf_config
    if isinstance(config, InklingMMConfig):
        raise RuntimeError("not resolved yet")
    if isinstance(config, Qwen3NextConfig):
        return config
    result = get_linear_attn_config(config)
    return result[1] if result else None
"""

RUNNER = """
from sglang.srt.configs.models import Qwen3NextConfig

class ModelRunner:
    def __init__(self):
        raise AssertionError("nothing is loaded this early")

    @property
    def mambaish_config(self):
        config = self.model_config.hf_config
        if isinstance(config, Qwen3NextConfig) and not self.is_draft_worker:
            return config
        return self._linear_attn_registry_cache[1] if self._linear_attn_registry_cache else None
"""

ARGUMENTS = """
from sglang.srt.configs.models import model_config
from sglang.srt.model_executor.cuda_graph_config import CudaGraphConfig

class ServerArgs:
    def __init__(self, model_path, cuda_graph_backend_prefill=None, platform=None, later=None, **others):
        self.model_path, self.platform, self.later = model_path, platform, later
        self.cuda_graph_backend_prefill = cuda_graph_backend_prefill
        vars(self).update(others)
        self.__post_init__()

    def __post_init__(self):
        if self.model_path == "dummy":
            return
        self._handle_cuda_graph_config()
        if self.later == "refuses":
            raise NotImplementedError("not together")
        if self.later == "disables":
            self.cuda_graph_config.prefill.backend = "disabled"

    def get_model_config(self):
        return model_config(self.model_path)

    def _handle_cuda_graph_config(self):
        self.cuda_graph_config, self._cuda_graph_config_locked = CudaGraphConfig(), set()
        if self.platform:
            self.cuda_graph_config.prefill.backend = self.platform
        if self.cuda_graph_backend_prefill:
            self.cuda_graph_config.prefill.backend = self.cuda_graph_backend_prefill
            self._cuda_graph_config_locked.add(("prefill", "backend"))
"""

DECLARED = {
    "sglang/srt/server_args.py": """
class ServerArgs:
    def __init__(self, model_path, cuda_graph_backend_prefill=None, platform=None, later=None, **others):
        self.model_path, self.platform, self.later = model_path, platform, later
        self.cuda_graph_backend_prefill = cuda_graph_backend_prefill
        self.cuda_graph_config, self.declared = None, []
        vars(self).update(others)

    def resolve_once(self):
        from sglang.srt.arg_groups.pipeline import run_resolution_pipeline
        run_resolution_pipeline(self)
""",
    "sglang/srt/arg_groups/overrides.py": """
from sglang.srt.configs.models import model_config

class View:
    def __init__(self, server_args):
        self.server_args = server_args

    def __getattr__(self, name):
        for source, fields in reversed(self.server_args.declared):
            if name in fields:
                return fields[name]
        return getattr(self.server_args, name)

resolving_view = resolved_view = View

def declare_resolution(server_args, source, **fields):
    server_args.declared.append((source, fields))

def model_config_of(server_args):
    return model_config(server_args.model_path)
""",
    "sglang/srt/arg_groups/cuda_graph_hook.py": """
from sglang.srt.arg_groups.overrides import declare_resolution
from sglang.srt.model_executor.cuda_graph_config import CudaGraphConfig, PhaseConfig

def handle_cuda_graph_config(server_args):
    locked = {("prefill", "backend")} if server_args.cuda_graph_backend_prefill else set()
    backend = server_args.cuda_graph_backend_prefill or server_args.platform or "breakable"
    declare_resolution(server_args, "step", cuda_graph_config=CudaGraphConfig(prefill=PhaseConfig(backend)))
    server_args._cuda_graph_config_locked = locked
""",
}

PIPELINE = """
def run_resolution_pipeline(server_args):
    from sglang.srt.arg_groups.cuda_graph_hook import handle_cuda_graph_config
    from sglang.srt.arg_groups.overrides import declare_resolution
    from sglang.srt.model_executor.cuda_graph_config import CudaGraphConfig, PhaseConfig
    if server_args.model_path == "dummy":
        return
    handle_cuda_graph_config(server_args)
    if server_args.later == "refuses":
        raise NotImplementedError("not together")
    if server_args.later == "disables":
        declare_resolution(server_args, "later", cuda_graph_config=CudaGraphConfig(prefill=PhaseConfig("disabled")))
"""

_OLDER = {
    "sglang/srt/server_args.py": ARGUMENTS,
    "sglang/srt/arg_groups/overrides.py": "def resolved_view(server_args): return server_args\n",
}

LAYOUTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "arguments": ("0.5.18", {**_OLDER, "sglang/srt/configs/hybrid_arch.py": MAMBAISH}),
    "runner": ("0.5.15", {**_OLDER, "sglang/srt/model_executor/model_runner.py": RUNNER}),
    "pipeline": (
        "0.5.23",
        {
            **DECLARED,
            "sglang/srt/configs/hybrid_arch.py": MAMBAISH,
            "sglang/srt/arg_groups/pipeline.py": PIPELINE,
        },
    ),
}
"""Name: a release laid out so, and its files beside the common ones."""
