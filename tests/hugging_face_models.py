"""Small random models of Hugging Face transformers, made from a configuration, and their layers by hand."""


import numpy as np
import torch
import transformers
from torch import nn

from iha_theory import IHA, forward, softmax
from iha_theory.torch_hugging_face import HeadMixing, interleave_heads
from tests.torch_reference import DOUBLE, mask_of

transformers.logging.set_verbosity_error()

WORDS, WINDOW = 17, 3
LLAMA = {"vocab_size": WORDS, "hidden_size": 24, "intermediate_size": 16, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.4,
          "bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0}
_GPT2 = {"vocab_size": WORDS, "n_embd": 21, "n_layer": 2, "n_head": 3, "n_positions": 64, "initializer_range": 0.4,
         "scale_attn_by_inverse_layer_idx": True, "bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0}
_BERT = {"vocab_size": WORDS, "hidden_size": 24, "intermediate_size": 16, "num_hidden_layers": 2,
         "num_attention_heads": 3, "initializer_range": 0.4}
#: Grouped heads and rotary positions; neither, and a scale of each layer's own; a sliding window.
KINDS = {"llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig, LLAMA),
         "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config, _GPT2),
         "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig, {**LLAMA, "sliding_window": WINDOW}),
         "bert": (transformers.BertModel, transformers.BertConfig, _BERT),
         "crossing": (transformers.GPT2LMHeadModel, transformers.GPT2Config, {**_GPT2, "add_cross_attention": True}),
         "softcap": (transformers.Gemma2ForCausalLM, transformers.Gemma2Config, {**LLAMA, "head_dim": 6}),
         "elsewhere": (transformers.GPTNeoForCausalLM, transformers.GPTNeoConfig,
                       {"vocab_size": WORDS, "hidden_size": 24, "num_layers": 1, "num_heads": 4,
                        "attention_types": [[["global"], 1]]})}
CAUSAL = ("llama", "gpt2", "mistral")
MASKS = ("token", "flat")
#: 1 where a token is real.
ALL = torch.ones(2, 7, dtype=torch.long)
LEFT = torch.tensor([[1] * 7, [0, 0, 1, 1, 1, 1, 1]])
PADDINGS = {"none": None, "left": LEFT, "right": LEFT.flip(1)}


def model_of(kind, **changes):
    torch.manual_seed(0)
    model, config, sizes = KINDS[kind]
    return model(config(**{**sizes, **changes})).double().eval()


def mixings(model):
    return [m for m in model.modules() if isinstance(m, HeadMixing)]


def randomise(model, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for mixing in mixings(model):
        for parameter in mixing.parameters():
            nn.init.normal_(parameter, generator=generator)
    return model


def interleaved(kind, mask, pseudo=3, **changes):
    """With random mixing."""
    model = model_of(kind, **changes)
    interleave_heads(model, pseudo, mask=mask)
    return randomise(model)


def words(batch=2, length=7):
    return torch.randint(1, WORDS, (batch, length), generator=torch.Generator().manual_seed(2))


def positions_of(padding):
    return (padding.cumsum(1) - 1).clamp(min=0)


@torch.no_grad()
def logits(model, x, padding=None, **call):
    if padding is not None:
        call.update(attention_mask=padding, position_ids=positions_of(padding))
    return model(x, use_cache=False, **call)[0]


def rotated(t, cosine, sine):
    """(head, pseudo, token, feature): features i and i + d / 2 of token n turned, after mixing, alike for all pseudo."""
    first, second = np.split(t, 2, -1)
    return t * cosine + np.concatenate((-second, first), -1) * sine


def by_hand(model, module, x, real, mask):
    """(token, model): what an attention module makes of one sequence (token, model), by the numpy formula.

    Shared kv heads are written out: base head g m stands for kv head m, the others are left out by alpha.
    """
    heads, kv_heads = module.mixing.heads, module.mixing.kv_heads
    group = heads // kv_heads
    alpha_q, alpha_k, alpha_v, r = (getattr(module.mixing, name).detach().numpy()
                                    for name in ("alpha_q", "alpha_k", "alpha_v", "collapse"))
    if hasattr(module, "c_attn"):
        # Biases through a feature that is always 1.
        weight = torch.cat((module.c_attn.weight, module.c_attn.bias[None])).T
        parts = [part.detach().numpy() for part in weight.chunk(3)]
        last, bias = module.c_proj.weight.detach().numpy(), module.c_proj.bias.detach().numpy()
        x = np.concatenate((x, np.ones((len(x), 1))), 1)
    else:
        parts = [p.weight.detach().numpy() for p in (module.q_proj, module.k_proj, module.v_proj)]
        last, bias = module.o_proj.weight.detach().numpy().T, 0.0
    w_q, w_k, w_v = (part.reshape(-1, module.head_dim, x.shape[1]).swapaxes(1, 2) for part in parts)
    written = [np.zeros((heads, heads, alpha_k.shape[2])) for _ in range(2)]
    for out, alpha in zip(written, (alpha_k, alpha_v), strict=True):
        out[::group] = alpha.repeat(group, 1)
    weights = IHA(w_q, w_k.repeat(group, 0), w_v.repeat(group, 0), alpha_q, written[0], written[1], r)
    window = WINDOW if isinstance(model, transformers.MistralForCausalLM) else None
    attend = softmax(module.scaling, mask=mask_of(mask, window, real))

    def operator(q, k, v):
        if hasattr(model, "transformer"):
            return attend(q, k, v)
        token = torch.from_numpy(np.maximum(real.cumsum() - 1, 0))[None]
        cosine, sine = (t[0].numpy() for t in model.model.rotary_emb(torch.zeros(1, dtype=DOUBLE), token))
        return attend(rotated(q, cosine, sine), rotated(k, cosine, sine), v)

    return forward(weights, x, operator) @ last + bias
