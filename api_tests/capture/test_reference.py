"""Each recurrent family agrees with transformers' own torch code: a prefill, a continued prefill, then decode steps.

float32, 1e-4 relative. The reference goes token by token or in one pass with its own cache; here the same tokens go
through the pools, in a slot among others, beside another request.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the worker extra is not installed")
transformers = pytest.importorskip("transformers", reason="the reference implementations are not installed")

from torch import Tensor, nn  # noqa: E402 - torch may be absent

from engine.capture.attention.batch import ForwardBatch  # noqa: E402
from engine.capture.attention.full import FullAttentionBackend  # noqa: E402
from engine.capture.attention.linear import LinearAttentionBackend  # noqa: E402
from engine.capture.attention.pools import Pools  # noqa: E402
from engine.capture.models.families import mixers_for  # noqa: E402
from engine.capture.models.mixer import PagedMixer, RecurrentMixer  # noqa: E402
from engine.capture.shape import ModelShape  # noqa: E402

HIDDEN = 64


def gdn() -> tuple[nn.Module, ModelShape]:
    from transformers.models.qwen3_next.configuration_qwen3_next import Qwen3NextConfig
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet

    config = Qwen3NextConfig(
        hidden_size=HIDDEN,
        num_hidden_layers=1,
        layer_types=["linear_attention"],
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=16,
        linear_value_head_dim=8,
        linear_conv_kernel_dim=4,
    )
    return Qwen3NextGatedDeltaNet(config, 0), shape("gdn", linear_value_heads=4, linear_value_dim=8)


def kda() -> tuple[nn.Module, ModelShape]:
    from transformers.models.kimi_linear.configuration_kimi_linear import KimiLinearConfig
    from transformers.models.kimi_linear.modeling_kimi_linear import KimiLinearDeltaAttention

    config = KimiLinearConfig(
        hidden_size=HIDDEN,
        num_hidden_layers=1,
        layer_types=["linear_attention"],
        linear_num_heads=2,
        linear_head_dim=16,
        linear_conv_kernel_dim=4,
        rms_norm_eps=1e-6,
    )
    return KimiLinearDeltaAttention(config, 0), shape("kda")


def mamba2() -> tuple[nn.Module, ModelShape]:
    from transformers.models.mamba2.configuration_mamba2 import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

    config = Mamba2Config(
        hidden_size=HIDDEN,
        num_hidden_layers=1,
        num_heads=4,
        head_dim=32,
        expand=2,
        state_size=16,
        n_groups=2,
        conv_kernel=4,
        chunk_size=8,
        layer_norm_epsilon=1e-6,
    )
    return Mamba2Mixer(config, 0), shape("mamba2", linear_value_heads=4, linear_value_dim=32, linear_groups=2)


def mamba() -> tuple[nn.Module, ModelShape]:
    from transformers.models.mamba.configuration_mamba import MambaConfig
    from transformers.models.mamba.modeling_mamba import MambaMixer

    config = MambaConfig(
        hidden_size=HIDDEN, num_hidden_layers=1, state_size=16, expand=2, time_step_rank=4, conv_kernel=4
    )
    return MambaMixer(config, 0), shape("mamba")


def shortconv() -> tuple[nn.Module, ModelShape]:
    from transformers.models.lfm2.configuration_lfm2 import Lfm2Config
    from transformers.models.lfm2.modeling_lfm2 import Lfm2ShortConv

    config = Lfm2Config(hidden_size=HIDDEN, num_hidden_layers=1, layer_types=["conv"], conv_L_cache=3, conv_bias=False)
    return Lfm2ShortConv(config, 0), shape("shortconv", conv_kernel=3)


def lightning() -> tuple[nn.Module, ModelShape]:
    from transformers.models.minimax.configuration_minimax import MiniMaxConfig
    from transformers.models.minimax.modeling_minimax import MiniMaxLightningAttention

    config = MiniMaxConfig(
        hidden_size=HIDDEN,
        num_hidden_layers=3,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        block_size=8,
    )
    return MiniMaxLightningAttention(config, 0), shape("lightning", layers=("lightning", "attention", "lightning"))


def shape(kind: Any, layers: Any = None, **sizes: int) -> ModelShape:
    return ModelShape(
        architecture=None,
        family=kind,
        layer_kinds=layers or (kind,),
        hidden_size=HIDDEN,
        **sizes,  # type: ignore[arg-type]  # only sizes are given
    )


class Reference:
    """One reference layer with the cache it comes with; ``[n, hidden]`` in and out."""

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer
        self.past: list[Tensor] = []

    def __call__(self, hidden: Tensor) -> Tensor:
        """Everything so far in one pass from nothing: the plainest thing that the reference can do."""
        self.past.append(hidden)
        whole = torch.cat(self.past)[None]
        lightning_layer = type(self.layer).__name__ == "MiniMaxLightningAttention"
        out: Tensor = self.layer(whole, (None, None), None)[0] if lightning_layer else self.layer(whole)
        return out[0, -len(hidden) :]


class Ours:
    """The same layer over pools with several slots."""

    def __init__(self, mixer: RecurrentMixer) -> None:
        self.mixer = mixer
        cpu = torch.device("cpu")
        self.pools = Pools(
            max_requests=5, max_context=4, kv={}, states={0: mixer.state_shapes(torch.float32)}, device=cpu
        )
        self.pools.scramble(torch.Generator().manual_seed(3))
        self.pools.requests.state_index.copy_(torch.tensor([0, 4, 2, 5, 1, 3]))
        self.backend = LinearAttentionBackend(self.pools, mixer.label, "decode-owned", cpu)

    def __call__(self, parts: list[Tensor], rows: list[int], prefixes: list[int], *, decode: bool) -> list[Tensor]:
        lengths = [len(part) for part in parts]
        hidden = torch.cat(parts)
        zeros = torch.zeros(len(hidden), dtype=torch.int64)
        self.backend.init_forward_metadata(
            ForwardBatch(
                mode="decode" if decode else "extend",
                input_ids=zeros,
                positions=zeros,
                out_cache_loc=zeros,
                req_pool_indices=torch.tensor(rows),
                prefix_lens=torch.tensor(prefixes),
                query_start_loc=torch.tensor([0, *lengths]).cumsum(0),
                max_len=max(lengths),
            )
        )
        inputs = self.mixer.project(hidden, zeros)
        out = self.mixer.output(self.backend.forward(self.mixer, inputs), inputs)
        return list(torch.split(out, lengths))


@pytest.mark.parametrize("make", [gdn, kda, mamba2, mamba, shortconv, lightning], ids=lambda make: make.__name__)
def test_agrees_with_transformers(make: Callable[[], tuple[nn.Module, ModelShape]]) -> None:
    with torch.no_grad():
        worst = worst_difference(make)
    assert math.isfinite(worst)
    assert worst < 1e-4


def worst_difference(make: Callable[[], tuple[nn.Module, ModelShape]]) -> float:
    """The largest difference over all passes, relative to the reference's largest magnitude in that pass."""
    torch.manual_seed(11)
    layer, scaled = make()
    for name, parameter in layer.named_parameters():
        if name.endswith(("A_log", "dt_bias")):
            parameter.copy_(torch.rand(parameter.shape) * 1.5 - 0.5)
        else:
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    layer.eval()
    (mixer,) = mixers_for(scaled, 0)
    assert isinstance(mixer, RecurrentMixer)
    ours_only, theirs_only = mixer.load_state_dict(layer.state_dict(), strict=False)
    assert ours_only == []
    assert set(theirs_only) <= {"query_decay", "key_decay", "diagonal_decay"}
    ours, first, second = Ours(mixer.eval()), Reference(layer), Reference(layer)
    worst = 0.0
    seen = [0, 0]
    # Prefill both, go on with the first alone, then decode both: chunked prefill and batching in one.
    for lengths in ([19, 5], [7, 0], [1, 1], [1, 1], [1, 1]):
        tokens = [torch.randn(n, HIDDEN) for n in lengths]
        expected = [reference(part) for reference, part in zip((first, second), tokens, strict=True) if len(part)]
        live = [i for i in (0, 1) if lengths[i]]
        actual = ours(
            [tokens[i] for i in live], [i + 2 for i in live], [seen[i] for i in live], decode=max(lengths) == 1
        )
        seen = [a + b for a, b in zip(seen, lengths, strict=True)]
        for one, other in zip(actual, expected, strict=True):
            worst = max(worst, float((one - other).abs().max() / other.abs().max()))
    return worst


@pytest.mark.parametrize("q_lora_rank", [None, 24])
def test_latent_attention_agrees_with_transformers(q_lora_rank: int | None) -> None:
    from transformers.models.deepseek_v3.configuration_deepseek_v3 import DeepseekV3Config
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention, DeepseekV3RotaryEmbedding

    config = DeepseekV3Config(
        hidden_size=HIDDEN,
        num_attention_heads=4,
        num_key_value_heads=4,
        q_lora_rank=q_lora_rank,
        kv_lora_rank=32,
        qk_rope_head_dim=8,
        qk_nope_head_dim=16,
        v_head_dim=16,
    )
    config._attn_implementation = "eager"
    torch.manual_seed(5)
    layer = DeepseekV3Attention(config, 0).eval()
    scaled = shape("none", ("attention",), q_lora_rank=q_lora_rank or 0)
    (mixer,) = mixers_for(replace(scaled, attention="mla"), 0)
    assert isinstance(mixer, PagedMixer)
    mixer.load_state_dict(layer.state_dict(), strict=True)
    cpu = torch.device("cpu")
    pools = Pools(max_requests=3, max_context=24, kv={0: mixer.token_shapes(torch.float32)}, states={}, device=cpu)
    pools.requests.table[2] = torch.randperm(pools.kv.slots)[:24] + 1
    backend = FullAttentionBackend(pools)
    tokens = torch.randn(20, HIDDEN)
    with torch.no_grad():
        places = torch.arange(20)[None]
        cos_sin = DeepseekV3RotaryEmbedding(config)(tokens, places)
        causal = torch.full((20, 20), -1e30).triu(1)[None, None]
        expected = layer(tokens[None], cos_sin, causal)[0][0]
        actual = []
        for start, end in ((0, 9), (9, 17), (17, 18), (18, 19), (19, 20)):
            positions = torch.arange(start, end)
            backend.init_forward_metadata(
                ForwardBatch(
                    mode="extend",
                    input_ids=positions,
                    positions=positions,
                    out_cache_loc=pools.requests.table[2, start:end],
                    req_pool_indices=torch.tensor([2]),
                    prefix_lens=torch.tensor([start]),
                    query_start_loc=torch.tensor([0, end - start]),
                    max_len=end - start,
                )
            )
            inputs = mixer.project(tokens[start:end], positions)
            actual.append(mixer.output(backend.forward(mixer, inputs), inputs))
    worst = float((torch.cat(actual) - expected).abs().max() / expected.abs().max())
    assert worst < 1e-4
