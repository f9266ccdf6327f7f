"""What an installed engine does with a few launches, and its backend with empty tables; run by the engine's Python.

Standard input: ``{"plugins": FOLDER or null, "cases": [{"id", "config", "argv"}], "unlocked": CASE, "tables": CONFIG,
"argv": [...] or absent}``. The last line printed is ``{"cases": {ID: ANSWER}, "unlocked": ANSWER, "outside": ANSWER,
"tables": {METHOD: "ERROR: MESSAGE"}}``; an answer is ``{"outcome", "prefill", "error", "log"}``.

``unlocked``: a launch whose lock on the prefill backend is dropped after the command line was read, since no released
engine brings full prefill to a hybrid model unasked. ``outside``: a hybrid model that registers itself, as models
outside the engine do. ``argv``: the process's own command line meanwhile, for what reads it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import shutil
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

importlib.import_module("fake_gpu")  # before the engine: the machine has no GPU

FULL = ["--cuda-graph-backend-prefill", "full"]


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):
            self.lines.append(f"{record.levelname}: {record.getMessage()}")


def resolve(config: Path, argv: list[str], root: Path) -> dict[str, Any]:
    """One launch, resolved as the engine's launcher does."""
    folder = root / config.stem
    if not folder.exists():
        folder.mkdir()
        shutil.copy(config, folder / "config.json")
    kept = Kept()
    answer: dict[str, Any] = {"outcome": "resolved", "prefill": None, "error": None}
    logger = logging.getLogger("graphgate_sglang")
    logger.addHandler(kept)
    try:
        given = ["--model-path", str(folder), "--skip-tokenizer-init", *argv]
        sys.argv = ["sglang", "serve", *given] if sys.argv[1:2] == ["serve"] else ["probe"]
        with contextlib.redirect_stdout(sys.stderr):
            answer["prefill"] = settled(prepared(given)).prefill.backend
    except Exception as error:
        answer |= {"outcome": "refused", "error": f"{type(error).__name__}: {error}"}
    finally:
        logger.removeHandler(kept)
    return {**answer, "log": kept.lines}


def prepared(given: list[str]) -> Any:
    """The engine's arguments, resolved."""
    server_args = importlib.import_module("sglang.srt.server_args").prepare_server_args(given)
    if hasattr(server_args, "resolve_once"):
        server_args.resolve_once()
    return server_args


def settled(server_args: Any) -> Any:
    """The resolved graph configuration, wherever the release keeps it."""
    overrides = importlib.import_module("sglang.srt.arg_groups.overrides")
    return getattr(overrides, "resolved_view", lambda itself: itself)(server_args).cuda_graph_config


@contextlib.contextmanager
def lock_dropped() -> Iterator[None]:
    """Whoever named the prefill backend is forgotten once the command line has been read."""
    try:
        owner, name = importlib.import_module("sglang.srt.arg_groups.cuda_graph_hook"), "parse_cuda_graph_config"
    except ModuleNotFoundError:
        owner, name = importlib.import_module("sglang.srt.server_args").ServerArgs, "_parse_cuda_graph_config"
    parse = getattr(owner, name)

    def forgetting(server_args: Any) -> None:
        parse(server_args)
        server_args._cuda_graph_config_locked.discard(("prefill", "backend"))

    setattr(owner, name, forgetting)
    try:
        yield
    finally:
        setattr(owner, name, parse)


def outside(root: Path) -> dict[str, Any]:
    """A model of another package, which registers itself in the engine's registry of linear-attention models."""
    transformers = importlib.import_module("transformers")
    registry = importlib.import_module("sglang.srt.configs.linear_attn_model_registry")
    members = {"model_type": "acme_hybrid", "__module__": "acme_models.hybrid"}
    config_class = type("AcmeConfig", (transformers.LlamaConfig,), members)
    transformers.AutoConfig.register("acme_hybrid", config_class)
    backend = "sglang.srt.layers.attention.linear.kda_backend.KDAAttnBackend"
    spec = registry.LinearAttnModelSpec(config_class, backend, ["AcmeForCausalLM"])
    registry.register_linear_attn_model(spec)
    config = root / "acme.json"
    config.write_text(json.dumps({"model_type": "acme_hybrid", "architectures": ["AcmeForCausalLM"]}))
    return resolve(config, FULL, root)


class Pool:
    """The four answers that the metadata methods ask of the request pool."""

    req_index_to_mamba_index_mapping = None
    mamba_v2p_table = None
    mamba_translate_is_fusable = False

    def get_mamba_indices(self, requests: Any) -> Any:
        return importlib.import_module("torch").arange(len(requests))

    def translate_mamba_indices(self, indices: Any) -> Any:
        return indices


class FullAttention:
    """The other half of a hybrid backend: does nothing, and knows nothing."""

    def init_forward_metadata_out_graph(self, *_: Any, **__: Any) -> None:
        """Nothing to prepare."""

    def __getattr__(self, name: str) -> None:
        return None


def published(server_args: Any) -> None:
    """Make the arguments those of this process, as each of the engine's processes does; 0.5.15 and 0.5.16 need none."""
    context: Any = importlib.import_module("sglang.srt.runtime_context")
    if hasattr(context, "SpawnRanks"):
        context.publish(server_args, role="test", ranks=context.SpawnRanks(world_rank=0, gpu_id=0))
    elif hasattr(context, "publish"):
        context.publish(server_args, role="test")
    else:
        arguments: Any = importlib.import_module("sglang.srt.server_args")
        arguments.set_global_server_args_for_scheduler(server_args)


def tables(config: Path, root: Path) -> dict[str, str]:
    """The engine's own backends on the CPU, called before anybody allocated their tables, and with too few of them."""
    server_args = prepared(["--model-path", str(root / config.stem), "--skip-tokenizer-init"])
    published(server_args)
    torch: Any = importlib.import_module("torch")
    backends: Any = importlib.import_module("sglang.srt.layers.attention.hybrid_linear_attn_backend")
    modes: Any = importlib.import_module("sglang.srt.model_executor.forward_batch_info").ForwardMode
    runner = types.SimpleNamespace(
        device="cpu", server_args=server_args, is_draft_worker=False, req_to_token_pool=Pool(), token_to_kv_pool=None
    )
    linear = backends.MambaAttnBackendBase(runner)
    hybrid = backends.HybridLinearAttnBackend(FullAttention(), linear, [3])
    rows = torch.arange(4)
    batch = types.SimpleNamespace(
        batch_size=4, req_pool_indices=rows, forward_mode=modes.EXTEND, spec_info=None, seq_lens_cpu=None
    )
    few = backends.MambaAttnBackendBase(runner)
    few.state_indices_list = [torch.zeros(1), torch.zeros(2)]
    calls: dict[str, Callable[[], Any]] = {
        "HybridLinearAttnBackend.init_forward_metadata_out_graph": lambda: hybrid.init_forward_metadata_out_graph(
            batch, in_capture=True
        ),
        "_replay_metadata": lambda: linear._replay_metadata(4, rows, modes.EXTEND, None, None, in_capture=True),
        "_capture_metadata": lambda: linear._capture_metadata(4, rows, modes.DECODE, None),
        "_replay_metadata, two sizes": lambda: few._replay_metadata(4, rows, modes.DECODE, None, None),
    }
    said = {}
    for name, call in calls.items():
        try:
            call()
            said[name] = "no error"
        except Exception as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


def main() -> int:
    """Answer what standard input asks."""
    asked = json.load(sys.stdin)
    if asked["plugins"]:
        sys.path.insert(0, asked["plugins"])
        importlib.import_module("sglang.srt.plugins").load_plugins()
    if asked.get("serve"):
        sys.argv = ["sglang", "serve"]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        said: dict[str, Any] = {
            "cases": {case["id"]: resolve(Path(case["config"]), case["argv"], root) for case in asked["cases"]}
        }
        with lock_dropped():
            said["unlocked"] = resolve(Path(asked["unlocked"]["config"]), asked["unlocked"]["argv"], root)
        said["outside"] = outside(root)
        said["tables"] = tables(Path(asked["tables"]), root)
    print(json.dumps(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
