"""The properties in their order, and the audit that goes through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from iha_theory.claims import Means, Relation, Scope, Verdict
from iha_theory.conformance import conduct, padding, sight, white_box
from iha_theory.conformance.adapter import Adapter
from iha_theory.conformance.built_in import built_in
from iha_theory.conformance.findings import Finding, Report
from iha_theory.conformance.judgement import Judgement, not_applicable
from iha_theory.conformance.limits import TooLong, limited, single_thread
from iha_theory.conformance.subject import LayerError, Subject, named, told


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
             "Nothing else can be judged before this is mended.", conduct.runs),
    Property("deterministic", "two calls in eval mode give the same, and leave the input alone",
             "Something random is left on in eval mode, most often dropout: pass dropout only while training. Or an "
             "operation in place works on the input itself.", conduct.deterministic),
    Property("training mode", "with dropout off, training mode computes what eval mode does",
             "Something but dropout depends on the mode, a mask for instance.", conduct.training),
    Property("batch", "a sequence gives the same alone and among others",
             "Sequences of a batch see one another: look for a reshape across the batch axis, or for statistics over it. "
             "If the tokens are the first axis, say so with batch_first = False or Adapter(call=...).",
             conduct.batch),
    Property("repeated tokens", "is not affine on repeated tokens, where multi-head attention is (Theorem 2)",
             "On repeated tokens multi-head attention is affine with any number of heads, and IHA with P >= 2 is not. An "
             "affine layer mixes before attention only: its mixing folds into the projections. Form P pseudo-tokens for "
             "each token and attend over all N P of them. If it is meant as multi-head attention, or has P = 1, say "
             "Adapter(claims='mha').", sight.repeated_tokens, Relation.DIFFERENT),
    Property("causality", "sees all tokens, or those up to its own, as it says",
             "A mask over the virtual tokens does not mean what it means over tokens: position n P + j must be compared as "
             "token n, and the order of pseudo-tokens (interleaved or stacked) must be the mask's.", sight.causality),
    Property("permutation", "does not heed the order of tokens beyond its mask",
             "The layer depends on the order of tokens without having positions: heads and tokens are mixed by a reshape, "
             "or a mask is over stacked pseudo-tokens. If it adds positions, say Adapter(positions=True).",
             sight.permutation),
    Property("right padding", "real tokens do not see masked tokens behind them",
             "The padding mask must be repeated for the P pseudo-tokens of each token, in their order, and True must mean "
             "what the caller means.", padding.right_padding),
    Property("left padding", "real tokens do not see masked tokens before them",
             "The padding mask must be repeated for the P pseudo-tokens of each token, in their order, and be joined with "
             "the causal mask.", padding.left_padding),
    Property("dead rows", "a sequence that is all padding gives zeros through the output projection",
             "A softmax over nothing is NaN, and over the smallest finite number the mean of masked values: set rows "
             "that see nothing to zero.", padding.dead_rows),
    Property("dtypes", "float32, bfloat16 and float16 go in and out, near the float64 answer",
             "A dtype is written into the code: take that of the input, and accumulate in float32 inside only.",
             conduct.dtypes),
    Property("decoding", "token by token through its cache equals one pass",
             "The cache forgets or displaces keys: append P pseudo-keys for each token, at the positions they would have "
             "in the full pass.", padding.decoding),
    Property("gradients", "are finite, right, and reach the input and every parameter",
             "A parameter without a gradient is not used, or was detached: it will never train. A gradient that the "
             "difference quotient contradicts comes from a backward pass written by hand.", conduct.gradients),
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
    Property("operators", "in linear attention, applies more operators than multi-head attention's H, and no fewer than "
             "Algorithm 1 does",
             "The pseudo-heads' operators span too few dimensions: the mixing folds into the projections.",
             white_box.operators, Relation.AT_MOST),
    Property("parameters", "has Q + 4 H^2 P parameters (multi-head attention: Q)",
             "There are weights that the formula does not have, or some are missing. Tied or parametrised weights are "
             "counted as they are stored.", white_box.parameters),
)
PROPERTIES = BLACK_BOX + WHITE_BOX
#: Seconds of a time limit, at most.
LONGEST = 86400
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
    if not 0 < time_limit <= LONGEST:
        raise ValueError(f"audit: time_limit={time_limit}, wanted a positive number of seconds, at most {LONGEST}")
    if not 0 <= seed < 2**31:
        raise ValueError(f"audit: seed={seed}, wanted a whole number from 0 to 2^31 - 1")
    chosen = adapter or built_in(layer) or Adapter(white_box=False)
    subject = Subject(layer, chosen, seed)
    subject.given()
    if chosen.white_box:
        subject.pseudo = chosen.read(layer).pseudo
    return _rows(subject, time_limit)


def _rows(subject: Subject, time_limit: float) -> Iterator[Finding]:
    chosen, stopped = subject.adapter, False
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
        with limited(time_limit), torch.random.fork_rng(devices=[]), torch.enable_grad(), single_thread():
            torch.manual_seed(subject.seed)
            return item.probe(subject)
    except (LayerError, TooLong) as error:
        return Judgement(False, str(error), case)
    except ValueError:
        raise
    except Exception as error:
        return Judgement(False, told(error), case)


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
