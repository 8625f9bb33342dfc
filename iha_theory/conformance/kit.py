"""The properties in their order, and the audit that goes through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from iha_theory.claims import Means, Relation, Scope, Verdict
from iha_theory.conformance import black_box, white_box
from iha_theory.conformance.adapter import Adapter, built_in
from iha_theory.conformance.findings import Finding, Report
from iha_theory.conformance.judgement import Judgement, not_applicable
from iha_theory.conformance.subject import LayerError, Subject, TooLong, limited, named


@dataclass(frozen=True)
class Property:
    """One thing to ask of a layer: ``says`` when it is as it should be, ``meaning`` when it is not."""

    key: str
    says: str
    meaning: str
    probe: Callable[[Subject], Judgement]
    relation: Relation = Relation.EQUAL


BLACK_BOX = (
    Property("runs", "maps (batch, N, D) to finite numbers of the same shape",
             "Nothing else can be judged before this is mended.", black_box.runs),
    Property("deterministic", "two calls in eval mode give the same",
             "Something random is left on in eval mode, most often dropout: pass dropout only while training.",
             black_box.deterministic),
    Property("batch", "a sequence gives the same alone and among others",
             "Sequences of a batch see one another: look for a reshape across the batch axis, or for statistics over it.",
             black_box.batch),
    Property("repeated tokens", "is more than multi-head attention: not affine on repeated tokens (Theorem 2)",
             "On repeated tokens multi-head attention is affine with any number of heads, and IHA with P >= 2 is not. An "
             "affine layer mixes before attention only: its mixing folds into the projections. Form P pseudo-tokens for "
             "each token and attend over all N P of them.", black_box.repeated_tokens, Relation.DIFFERENT),
    Property("causality", "sees all tokens, or those up to its own, as it says",
             "A mask over the virtual tokens does not mean what it means over tokens: position n P + j must be compared as "
             "token n, and the order of pseudo-tokens (interleaved or stacked) must be the mask's.", black_box.causality),
    Property("permutation", "does not heed the order of tokens beyond its mask",
             "The layer depends on the order of tokens without having positions: heads and tokens are mixed by a reshape, "
             "or a mask is over stacked pseudo-tokens. If it adds positions, say Adapter(positions=True).",
             black_box.permutation),
    Property("right padding", "real tokens do not see masked tokens behind them",
             "The padding mask must be repeated for the P pseudo-tokens of each token, in their order, and True must mean "
             "what the caller means.", black_box.right_padding),
    Property("left padding", "real tokens do not see masked tokens before them",
             "The padding mask must be repeated for the P pseudo-tokens of each token, in their order, and be joined with "
             "the causal mask.", black_box.left_padding),
    Property("dead rows", "a sequence that is all padding gives zeros through the output projection",
             "A softmax over nothing is NaN, and over the smallest finite number the mean of masked values: set rows "
             "that see nothing to zero.", black_box.dead_rows),
    Property("dtypes", "float32, bfloat16 and float16 go in and out, near the float64 answer",
             "A dtype is written into the code: take that of the input, and accumulate in float32 inside only.",
             black_box.dtypes),
    Property("decoding", "token by token through its cache equals one pass",
             "The cache forgets or displaces keys: append P pseudo-keys for each token, at the positions they would have "
             "in the full pass.", black_box.decoding),
    Property("gradients", "are finite, and reach the input and every parameter",
             "A parameter without a gradient is not used, or was detached: it will never train.", black_box.gradients),
)
WHITE_BOX = (
    Property("algorithm 1", "equals Algorithm 1 with its own weights, for random alpha and R",
             "The layer computes another function of its weights than the paper's layer.", white_box.algorithm_1),
    Property("start", "as given, is multi-head attention with its own projections",
             "A model converted to this layer changes its outputs. Under the flat causal mask R must pick the last "
             "pseudo-head; all pseudo-tokens of a token need one rotary position; spare pseudo-heads are copies, not "
             "zeros. If this is not promised, say Adapter(starts_as_mha=False).", white_box.start),
    Property("separation", "no two pseudo-heads are bound to stay the same (Theorem 2, initialisation)",
             "Equal pseudo-keys and pseudo-values receive equal gradients without a mask and under the token mask, for "
             "ever. Keep the copies of the keys, and start the values at v + eps_j v' with sum_j eps_j = 0 and R picking "
             "the last pseudo-head: still multi-head attention, and free to train.", white_box.separation),
    Property("operators", "in linear attention, applies more operators than multi-head attention's H",
             "The pseudo-heads' operators span no more than H dimensions: the mixing folds into the projections.",
             white_box.operators, Relation.AT_MOST),
    Property("parameters", "has Q + 4 H^2 P parameters (multi-head attention: Q)",
             "There are weights that the formula does not have, or some are missing.", white_box.parameters),
)
PROPERTIES = BLACK_BOX + WHITE_BOX
KEYS = tuple(item.key for item in PROPERTIES)


def rows(layer: Any, adapter: Adapter | None = None, *, seed: int = 0, time_limit: float = 30.0) -> Iterator[Finding]:
    """The findings about a layer, one for each property, in the order of :data:`PROPERTIES`.

    Args:
        layer: a module or a callable that maps (batch, N, D) to the same shape; of a tuple the first entry counts. It
            is not changed: copies of it are tried, in eval mode and in float64 where it runs in that.
        adapter: what it says of itself and where its weights live; None takes the built-in one of
            :class:`iha_theory.torch_layer.InterleavedHeadAttention` and of ``torch.nn.MultiheadAttention``, and for
            other layers leaves the black box.
        seed: of the inputs and of the random parameters. time_limit: seconds for each property.

    Raises:
        ValueError: a layer that cannot be called, or an adapter whose names do not fit it.
    """
    if not callable(layer):
        raise ValueError(f"audit: got a {type(layer).__name__}, wanted a module or a callable")
    if time_limit <= 0:
        raise ValueError(f"audit: time_limit={time_limit}, wanted a positive number of seconds")
    chosen = adapter or built_in(layer) or Adapter(white_box=False, padding=True)
    subject = Subject(layer, chosen, seed)
    if chosen.white_box:
        weights = chosen.read(layer)
        subject.pseudo = weights.pseudo
    stopped = False
    for item in PROPERTIES:
        if stopped:
            judgement = not_applicable("the layer does not run")
        elif item in WHITE_BOX and not chosen.white_box:
            judgement = not_applicable("the weights are not named")
        else:
            judgement = _judged(item, subject, time_limit)
            stopped = item.key == "runs" and not judgement.good
        yield finding(item, judgement, affine=chosen.claims == "mha" or subject.pseudo == 1)


def audit(layer: Any, adapter: Adapter | None = None, *, seed: int = 0, time_limit: float = 30.0) -> Report:
    """All of :func:`rows`, as a report. Arguments and errors as there."""
    return Report(named(layer), tuple(rows(layer, adapter, seed=seed, time_limit=time_limit)))


def _judged(item: Property, subject: Subject, time_limit: float) -> Judgement:
    case = f"D={subject.features}, N={subject.tokens}"
    try:
        with limited(time_limit), torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(subject.seed)
            return item.probe(subject)
    except (LayerError, TooLong) as error:
        return Judgement(False, str(error), case)


def finding(item: Property, judgement: Judgement, *, affine: bool = False) -> Finding:
    """A probe's judgement as evidence; ``affine``: the layer is meant to be multi-head attention."""
    says = item.says
    if item.key == "repeated tokens" and affine:
        says = "is affine on repeated tokens, as multi-head attention is (Theorem 2)"
    applies = judgement.good is not None
    verdict = Verdict.OPEN if not applies else Verdict.FAILS if not judgement.good else (
        Verdict.AGREES if item.relation is Relation.EQUAL else Verdict.HOLDS)
    return Finding("conformance", item.key, says, item.relation.value, judgement.case or "-", Scope.INPUT, Means.FLOAT,
                   verdict, Verdict.HOLDS, judgement.witness, judgement.found, applies=applies, meaning=item.meaning)
