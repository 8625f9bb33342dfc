"""A small decoder with interleaved heads learns to repeat what it has read.

    python examples/decoder.py [--steps 100] [--seed 0]

A sequence is random symbols, and then the same symbols again; the loss counts the second half alone, where a model that
knows nothing pays log(16) = 2.77 for each symbol. Takes less than a minute on a CPU.
"""

from __future__ import annotations

import argparse
import math
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from iha_theory.torch_init import parameter_groups
from iha_theory.torch_layer import InterleavedHeadAttention

SYMBOLS, LENGTH = 16, 12


class Block(nn.Module):
    """Attention and a feed-forward part, each added to (batch, token, width) after a norm."""

    def __init__(self, width: int, heads: int, pseudo: int) -> None:
        super().__init__()
        self.attention_norm, self.feed_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = InterleavedHeadAttention(width, heads, pseudo, mask="token", rope="token", batch_first=True)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), need_weights=False)[0]
        return x + self.feed(self.feed_norm(x))


class Decoder(nn.Module):
    """Symbols (batch, token) to logits of the next one, (batch, token, symbol)."""

    def __init__(self, width: int = 64, heads: int = 4, pseudo: int = 4, blocks: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, width)
        self.blocks = nn.Sequential(*(Block(width, heads, pseudo) for _ in range(blocks)))
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, SYMBOLS))

    def forward(self, symbols: Tensor) -> Tensor:
        return self.head(self.blocks(self.embedding(symbols)))


def batch_of(size: int, generator: torch.Generator) -> Tensor:
    """(size, 2 LENGTH): random symbols twice."""
    return torch.randint(SYMBOLS, (size, LENGTH), generator=generator).repeat(1, 2)


def loss_of(model: nn.Module, symbols: Tensor) -> Tensor:
    """The cross-entropy of the symbols of the second half, in nats."""
    logits = model(symbols[:, :-1])[:, LENGTH - 1 :]
    return F.cross_entropy(logits.flatten(0, 1), symbols[:, LENGTH:].flatten())


def train(steps: int, seed: int = 0, report: int = 10) -> list[float]:
    """Train a decoder, print the loss every ``report`` steps, and return the loss of each step."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Decoder()
    optimiser = torch.optim.AdamW(parameter_groups(model), lr=2e-3)
    losses, start = [], time.perf_counter()
    for step in range(steps):
        loss = loss_of(model, batch_of(32, generator))
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
        if step % report == 0 or step == steps - 1:
            print(f"step {step:4d}  loss {losses[-1]:.4f}  {time.perf_counter() - start:5.1f} s")
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.steps < 1:
        parser.error(f"--steps: got {arguments.steps}, wanted a positive number")
    # Tensors this small gain nothing from more threads.
    torch.set_num_threads(1)
    print(f"knowing nothing costs {math.log(SYMBOLS):.4f}")
    train(arguments.steps, arguments.seed)


if __name__ == "__main__":
    main()
