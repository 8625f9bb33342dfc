"""Interleaved Head Attention as a torch module: trainable, on torch's fused kernels, with the arguments of
``torch.nn.MultiheadAttention``.

The formula is :func:`iha_theory.forward`; this is its second implementation, for speed, and is held to it by tests.
Virtual tokens are interleaved, position n P + j for pseudo-token j of token n: mixing to (batch, token, pseudo * head,
feature) gives that order as a view.
"""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from iha_theory.layer import IHA
from iha_theory.torch_arguments import Arguments, check_choices, check_sizes, checked
from iha_theory.torch_cache import KVCache
from iha_theory.torch_init import Init, initialize
from iha_theory.torch_kernels import Kernel, hard_attention, linear_attention, sdpa, softmax_attention, token_weights
from iha_theory.torch_masks import Sight
from iha_theory.torch_mixing import Matrices, Mixing, collapsed, mixed
from iha_theory.torch_rotary import turned


class InterleavedHeadAttention(nn.Module):
    """Interleaved Head Attention (Algorithm 1) with the conventions of ``torch.nn.MultiheadAttention``.

    Letters: B sequences, N query tokens, S key tokens, E = embed_dim, H = num_heads, H_kv = num_kv_heads,
    P = num_pseudo_heads, d_k = head_dim, d_v = value_dim.

    Args:
        embed_dim: E, features of the query and of the output.
        num_heads: H. num_pseudo_heads: P; None takes H.
        head_dim: d_k; None takes E / H. value_dim: d_v; None takes d_k.
        num_kv_heads: H_kv, a divisor of H; query head h reads kv head h // (H / H_kv). None takes H.
        kdim, vdim: features of key and value in cross-attention; None takes E.
        bias: whether the projections have one. dropout: on the attention weights, in training.
        out_proj: whether a last projection (H d_v to E) follows; without it the output is the H heads side by side.
        attention: "softmax" of q k^T / (sqrt(d_k) temperature); "linear", q k^T itself; "hard", the average over the
            maximal scores. "hard" with a temperature is softmax at it, through the fused kernel.
        temperature: None is 1 for softmax, 0 (exact ties) for hard. The book's beta is 1 / (sqrt(d_k) temperature).
        mask: "none"; "token": a token sees all pseudo-tokens of the tokens up to itself; "flat": a virtual token sees
            those up to itself, what a standard causal kernel computes.
        window: a token sees the last ``window`` tokens, itself included; wants a causal mask.
        rope: None; "token": one position for all pseudo-tokens of a token (multi-head attention stays contained);
            "virtual": position n P + j (the paper's; no guarantee for P > 1). Features (2 i, 2 i + 1) turn by
            position * rope_base ** (-2 i / d_k).
        batch_first: (batch, token, E) instead of (token, batch, E).
        init: of alpha and R; see :mod:`iha_theory.torch_init`.
        kernel: "auto", or "fused", "chunked" or "flex", which are taken or refused; see
            :mod:`iha_theory.torch_kernels`.

    Attributes:
        q_proj (H d_k, E), k_proj (H_kv d_k, kdim), v_proj (H_kv d_v, vdim), out_proj (E, H d_v) or None: ``nn.Linear``
            with these weights.
        mixing: :class:`iha_theory.torch_mixing.Mixing`, alpha and R in float32 at least.

    Raises:
        ValueError: an argument that is not possible; says what was got and wanted.
    """

    #: What torch's transformer layers look for. None and False keep them off their fused path, which would not mix.
    in_proj_weight = None
    in_proj_bias = None
    bias_k = None
    bias_v = None
    add_zero_attn = False
    _qkv_same_embed_dim = False

    def __init__(self, embed_dim: int, num_heads: int, num_pseudo_heads: int | None = None, *,
                 head_dim: int | None = None, value_dim: int | None = None, num_kv_heads: int | None = None,
                 kdim: int | None = None, vdim: int | None = None, bias: bool = True, dropout: float = 0.0,
                 out_proj: bool = True, attention: str = "softmax", temperature: float | None = None,
                 mask: str = "none", window: int | None = None, rope: str | None = None, rope_base: float = 10000.0,
                 batch_first: bool = False, init: Init = "mha", kernel: Kernel = "auto", device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        check_sizes(embed_dim=embed_dim, num_heads=num_heads)
        if head_dim is None and embed_dim % num_heads:
            raise ValueError(f"embed_dim: got {embed_dim}, wanted a multiple of num_heads={num_heads}, or give "
                             "head_dim")
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.num_pseudo_heads = num_heads if num_pseudo_heads is None else num_pseudo_heads
        self.head_dim = embed_dim // num_heads if head_dim is None else head_dim
        self.value_dim = self.head_dim if value_dim is None else value_dim
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        check_sizes(num_pseudo_heads=self.num_pseudo_heads, head_dim=self.head_dim, value_dim=self.value_dim,
                    num_kv_heads=self.num_kv_heads, kdim=self.kdim, vdim=self.vdim)
        check_choices(attention=attention, mask=mask, rope=rope, kernel=kernel, window=window, dropout=dropout,
                      temperature=temperature, head_dim=self.head_dim, num_heads=num_heads,
                      num_kv_heads=self.num_kv_heads)
        self.attention, self.temperature, self.mask, self.window = attention, temperature, mask, window
        self.rope, self.rope_base, self.dropout, self.batch_first = rope, rope_base, dropout, batch_first
        self.init: Init = init
        self.kernel: Kernel = kernel
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.q_proj = nn.Linear(embed_dim, num_heads * self.head_dim, bias, **made)
        self.k_proj = nn.Linear(self.kdim, self.num_kv_heads * self.head_dim, bias, **made)
        self.v_proj = nn.Linear(self.vdim, self.num_kv_heads * self.value_dim, bias, **made)
        self.out_proj = nn.Linear(num_heads * self.value_dim, embed_dim, bias, **made) if out_proj else None
        self.mixing = Mixing(num_heads, self.num_kv_heads, self.num_pseudo_heads, **made)
        self.reset_parameters()

    def reset_parameters(self, init: Init | None = None, *, noise: float = 0.05,
                         generator: torch.Generator | None = None) -> None:
        """Projections as in ``nn.MultiheadAttention`` (Xavier-uniform, biases 0); alpha and R as ``init`` says."""
        for projection in (self.q_proj, self.k_proj, self.v_proj, self.out_proj):
            if projection is not None:
                nn.init.xavier_uniform_(projection.weight, generator=generator)
                if projection.bias is not None:
                    nn.init.zeros_(projection.bias)
        initialize(self.mixing, self.init if init is None else init, noise, generator)

    @property
    def scale(self) -> float:
        """What scores are multiplied by under softmax."""
        return 1 / (self.head_dim**0.5 * (1.0 if self.temperature is None else self.temperature))

    def compute_dtype(self, query: Tensor) -> torch.dtype:
        """The dtype of queries and keys: autocast's where it is on."""
        kind = query.device.type
        if torch.is_autocast_enabled(kind) and query.dtype != torch.float64:
            return torch.get_autocast_dtype(kind)
        return self.q_proj.weight.dtype

    def new_cache(self, batch: int, max_tokens: int, *, dtype: torch.dtype | None = None) -> KVCache:
        """An empty cache for ``batch`` sequences of up to ``max_tokens`` tokens; dtype None takes the projections'."""
        check_sizes(batch=batch, max_tokens=max_tokens)
        weight = self.k_proj.weight
        return KVCache(batch, self.num_kv_heads, self.num_pseudo_heads, self.head_dim, self.value_dim, max_tokens,
                       self.window, device=weight.device, dtype=dtype or weight.dtype)

    def freeze_mixing(self) -> Self:
        """Stop training alpha and R, and skip the pseudo-queries that R ignores. Loading weights renews the choice."""
        self.mixing.freeze(same_for_all_heads=self.mask == "flat")
        return self

    def unfreeze_mixing(self) -> Self:
        """Undo :meth:`freeze_mixing`."""
        self.mixing.unfreeze()
        return self

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
                key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
                average_attn_weights: bool = True, is_causal: bool = False, *, position_ids: Tensor | None = None,
                cache: KVCache | None = None) -> tuple[Tensor, Tensor | None]:
        """The layer's output and, if asked for, its token-level weights.

        Args:
            query: (batch, token N, E), or (N, batch, E) without ``batch_first``, or (N, E).
            key, value: likewise with S tokens, kdim and vdim features; None: self-attention.
            key_padding_mask: (batch, S), Boolean with True where a key is *not* seen, or numbers added to its logits.
            attn_mask: (N, S) or (batch * H, N, S), Boolean with True where a key token is *not* seen, or numbers added
                to the logits of a token pair; on top of the layer's own mask. Head b H + h is attention head h.
            need_weights: whether to return weights; costs a second pass over the scores.
            average_attn_weights: average them over the output heads.
            is_causal: a hint, as in ``nn.MultiheadAttention``; raises where neither the layer nor attn_mask is causal.
            position_ids: (N,) or (batch, N), the tokens' positions for ``rope``; None counts from the cache's end.
            cache: of :meth:`new_cache`; the tokens are appended to it, and see all that is in it. key_padding_mask is
                that of the new tokens, and is remembered.

        Returns:
            output: as query, with E features (H d_v without ``out_proj``). Rows that see nothing give the output
                projection of zeros. weights: (batch, N, S), or (batch, H, N, S) if not averaged, or None: for output
                head o, sum over heads h, pseudo-queries j and pseudo-keys of R[o, h, j] times the attention weight.
                Rows sum to sum_hj R[o, h, j]; at a layer that is multi-head attention they are its weights.

        Raises:
            ValueError: an argument of the wrong shape or dtype, or one that contradicts the layer.
        """
        if cache is not None and key is value is key_padding_mask is attn_mask is position_ids is None and not need_weights:
            output = self._step(query, cache)
            if output is not None:
                return output, None
        batched = query.dim() == 3
        given = checked(self, query, key, value, key_padding_mask, attn_mask, is_causal, position_ids, cache)
        q, k, v, matrices = self._pseudo(given, None if cache is None else cache.matrices)
        sight = given.sight
        if cache is not None:
            k, v, padding = cache.extend(k, v, sight.padding)
            # Its keys were mixed by these: they stay what they are until it is reset.
            cache.matrices = matrices
            table = cache.table(sight.limits) if sight.queries == 1 else None
            sight = sight.with_keys(k.shape[2] // self.num_pseudo_heads, padding, table)
        attended = self._attend(q, k, v, sight)
        output = collapsed(attended.transpose(1, 2), matrices.r)
        if self.out_proj is not None:
            output = self.out_proj(output)
        weights = None
        if need_weights:
            weights = token_weights(q, k, sight, self.scale, self._act)
            weights = torch.einsum("ohi,bhnis->bons", matrices.r.view(self.num_heads, -1, self.num_heads).mT, weights)
            weights = weights.mean(1) if average_attn_weights else weights
        if not batched:
            return output[0], None if weights is None else weights[0]
        return output if self.batch_first else output.transpose(0, 1), weights

    def _step(self, query: Tensor, cache: KVCache) -> Tensor | None:
        """One token after others in the plainest case, whose time is that of its calls; None where it is not that.

        The same steps as ``forward``'s, without what they allow for: padding, rotary positions, other kernels.
        """
        matrices, expected = cache.matrices, (cache.k.shape[0], 1, self.embed_dim)
        if (matrices is None or cache.padding is not None or cache.kept == cache.capacity or self.rope is not None
                or self._act != "softmax" or self.kernel != "auto" or self.mask == "none" or torch.is_grad_enabled()
                or self.head_dim != self.value_dim or (self.training and self.dropout) or query.dim() != 3):
            return None
        x = query if self.batch_first else query.transpose(0, 1)
        heads, width, kind = self.num_kv_heads, self.head_dim, self.q_proj.weight.dtype
        if (tuple(x.shape) != expected or x.dtype != kind or torch.is_autocast_enabled(x.device.type)
                or (self.kdim, self.vdim) != (self.embed_dim, self.embed_dim)
                or tuple(cache.k.shape[1::2]) != (heads, width) or cache.pseudo != self.num_pseudo_heads
                or cache.k.dtype != kind or cache.k.device != x.device):
            return None
        batch, base = x.shape[0], (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        if batch == 1 and matrices.q.shape == matrices.k.shape:
            together = torch.bmm(cache.stacked(matrices), torch.cat(base, 1).view(3, heads, width))
            q, k, v = together.view(3, 1, -1, heads, width).transpose(2, 3).unbind()
        else:
            q = mixed(base[0].view(batch, 1, self.num_heads, width), matrices.q).transpose(1, 2)
            k = mixed(base[1].view(batch, 1, heads, width), matrices.k).transpose(1, 2)
            v = mixed(base[2].view(batch, 1, heads, width), matrices.v).transpose(1, 2)
        k, v, _ = cache.extend(k, v, None)
        table = cache.table(self.mixing.limits) if self.mask == "flat" else None
        attended = sdpa(q, k, v, None if table is None else table[:, -k.shape[2] :], self.scale, 0.0)
        output = collapsed(attended.transpose(1, 2), matrices.r)
        output = output if self.out_proj is None else self.out_proj(output)
        return output if self.batch_first else output.transpose(0, 1)

    @property
    def _act(self) -> str:
        return "softmax" if self.attention == "hard" and self.temperature is not None else self.attention

    def _pseudo(self, given: Arguments, known: Matrices | None) -> tuple[Tensor, Tensor, Tensor, Matrices]:
        """Pseudo-queries (batch, H, N Q, d_k), -keys (batch, H_kv, S P, d_k), -values (.., d_v), and the mixing."""
        q, k, v = self.q_proj(given.query), self.k_proj(given.key), self.v_proj(given.value)
        batch, queries, keys = q.shape[0], q.shape[1], k.shape[1]
        q = q.view(batch, queries, self.num_heads, self.head_dim)
        k = k.view(batch, keys, self.num_kv_heads, self.head_dim)
        v = v.view(batch, keys, self.num_kv_heads, self.value_dim)
        matrices: Matrices = self.mixing(q.dtype) if known is None else known
        positions, others = given.positions, given.key_positions
        if self.rope == "token" and positions is not None and others is not None:
            # One position for all pseudo-tokens: turning before mixing is the same, and P times cheaper.
            q, k = turned(q, positions[..., None], self.rope_base), turned(k, others[..., None], self.rope_base)
        q, k, v = mixed(q, matrices.q), mixed(k, matrices.k), mixed(v, matrices.v)
        if self.rope == "virtual" and positions is not None and others is not None:
            q = turned(q, self.mixing.virtual(positions, queries=True), self.rope_base)
            k = turned(k, self.mixing.virtual(others, queries=False), self.rope_base)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), matrices

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
        if self._act == "softmax":
            return softmax_attention(q, k, v, sight, self.scale, self.dropout if self.training else 0.0, self.kernel)
        return (hard_attention if self._act == "hard" else linear_attention)(q, k, v, sight)

    @classmethod
    def from_weights(cls, weights: IHA, **options: Any) -> Self:
        """The layer of the book's weights: no biases, no output projection.

        Args:
            weights: see :data:`iha_theory.AXES`; without mixing it is multi-head attention, P = 1.
            options: attention, temperature, mask, window, rope, rope_base, dropout, batch_first, kernel, device, dtype.

        Raises:
            ValueError: output heads other than attention heads, or more or fewer of these than base heads.
        """
        from iha_theory.torch_convert import from_weights

        return from_weights(cls, weights, **options)

    def to_weights(self) -> IHA:
        """The book's weights of the layer, in float64; kv heads that are shared are written out.

        Raises:
            ValueError: biases, an output projection, or kdim or vdim other than E, which those weights do not have.
        """
        from iha_theory.torch_convert import to_weights

        return to_weights(self)

    @classmethod
    def from_mha(cls, mha: nn.MultiheadAttention, num_pseudo_heads: int | None = None, **options: Any) -> Self:
        """A layer that computes what ``mha`` computes, and can learn more: equal outputs under every mask.

        Args:
            mha: its projections are copied. num_pseudo_heads: P; None takes its heads.
            options: mask, window, kernel, init ("mha", the default, gives equal outputs).

        Raises:
            ValueError: ``add_zero_attn`` or ``bias_k``/``bias_v``: tokens that the layer does not have.
        """
        from iha_theory.torch_convert import from_mha

        return from_mha(cls, mha, num_pseudo_heads, **options)

    def to_mha(self) -> nn.MultiheadAttention:
        """The multi-head attention that this layer is.

        Raises:
            ValueError: it is none, and why.
        """
        from iha_theory.torch_convert import to_mha

        return to_mha(self)

    def extra_repr(self) -> str:
        return (f"{self.embed_dim}, heads={self.num_heads}, pseudo_heads={self.num_pseudo_heads}, "
                f"head_dim={self.head_dim}, value_dim={self.value_dim}, attention={self.attention!r}, "
                f"mask={self.mask!r}, window={self.window}, rope={self.rope!r}")
