"""The machine-checked theorems behind the numbered results: what each says in words, its name and its file.

The files stand in ``proofs/``; ``proofs/README.md`` says how to read them. A record counts as evidence only while its
file is as the proof checker accepted it (:mod:`iha_theory.proofs`).

The sentences use the paper's letters: N >= 1 tokens, d features, k powers, H heads, P pseudo-heads. "Bank" is
[X, AX, ..., A^(k-1) X], to be output for all X; s is the dimension of the span of I, A, ..., A^(k-1). A function e of
the score stands for the exponential: its values are divided by the sum of their row. "All sizes" are N, H, P and the
widths, each at least 1.
"""

from __future__ import annotations

import re
from pathlib import Path

from iha_theory.claims import Proof

FOLDER = Path(__file__).parent.parent / "proofs"


def _proofs(file: str, text: str) -> tuple[Proof, ...]:
    """A record for each unindented line, a name; the indented lines below it are what the theorem says."""
    found = re.findall(r"^(\w+)\n((?: +.*\n)+)", text, re.MULTILINE)
    if "".join(name + "\n" + says for name, says in found) != text.lstrip("\n"):
        raise ValueError(f"{file}: wanted names, each followed by indented lines; got {text!r}")
    return tuple(Proof(name, file, " ".join(says.split()), FOLDER) for name, says in found)


_MULTI_HEAD = _proofs("Theorem3.v", """
multi_head_filter
    for every commutative ring, N, d, k, A and X: k heads of linear MHA output the bank [X, AX, ..., A^(k-1) X]
multi_head_filter_parameters
    for every N, d and k: the k heads of MHA have 2N(N+d)k + d(N+d)k parameters
""")

THEOREM_1 = _MULTI_HEAD + _proofs("LowerBounds.v", """
least_heads_mha
    for every field with at least 3 elements, d >= 1, k >= 2 and A not a multiple of I: linear MHA with H heads of one
    width v, H v >= k d, can start with the bank [X, AX, ..., A^(k-1) X] if and only if H >= k
""")

THEOREM_2 = (
    *_proofs("Layer.v", """
mha_is_iha
    for every commutative ring, all sizes, every row-wise attention and mask on tokens: MHA is IHA with P = 1 and
    identity mixing
interleaved_is_stacked
    for every commutative ring, all sizes and every mask on pairs (pseudo-head, token): the interleaved order of the
    virtual tokens gives the output of the stacked order
"""),
    *_proofs("Theorem2_Inclusion.v", """
parameter_count
    for all sizes: IHA has Q + 4 H^2 P parameters, where MHA with the same base weights has Q
inclusion_token_mask
    for every ordered field, all sizes, every mask on tokens and every weighting that P copies share evenly: copies of
    each head, collapsed with coefficients that sum to 1, are MHA
inclusion_hard
    for every ordered field, all sizes, P >= 1 and every mask on tokens: with hard attention the copies are MHA
inclusion_flat_last
    for every ordered field, function e of the score, all sizes and P >= 1: under the flat causal mask the copies are
    causal MHA if R reads the last pseudo-head
inclusion_window_last
    for every ordered field, function e of the score, all sizes and P >= 1: so they are with a window of W tokens, W P
    virtual tokens
"""),
    *_proofs("Theorem2_Flat.v", """
flat_causal_error
    for every ordered field, positive function e of the score and all sizes: when R reads pseudo-head J under the flat
    causal mask, the copies differ from causal MHA by -(P-J) p (1-p) / (P - (P-J) p) (v - u)
flat_causal_exact
    for every ordered field, positive function e of the score and all sizes: that difference is 0 at a token if and
    only if J = P, the token is the first, or v = u there
flat_causal_fails_rat
    over the rationals, with an explicit function e of the score, two tokens and P = 2: R on the first pseudo-head
    gives 1/2 where causal MHA has 2/3
"""),
    *_proofs("Theorem2_Strictness.v", """
mha_layer_linear
    for every ordered field, N and D, any number of heads of any widths, an output projection, and for each head a
    weighting that sums to 1 and a mask that lets each token see some token: MHA is linear on repeated tokens
one_pseudo_head_linear
    for every ordered field, positive function e of the score and all sizes: IHA with P = 1 is linear on repeated
    tokens, whatever its mixing
"""),
    *_proofs("Theorem2_Examples.v", """
printed_is_identity
    for every ordered field, positive function e of the score, all sizes, P >= 1 and every mask under which all see
    something: on repeated tokens x the printed example outputs x W_V
corrected_token
    for every ordered field, function e of the score, all sizes and every mask on tokens under which all see
    something: with signs +, - on the values the example outputs (e(s) - e(-s)) / (e(s) + e(-s)) x W_V
corrected_additive_iff
    for every ordered field, positive increasing function e of the score and all sizes: that output is additive in x
    if and only if W_V = 0 or W_Q W_K^T is skew-symmetric
zero_mixing_stays
    for every ordered field, function e of the score and all sizes: a third pseudo-head with zero mixing leaves e(0)
    in the denominator
"""),
    *_proofs("Theorem2.v", """
theorem2_no_mask
    for every ordered field, positive increasing function e of the score and all sizes, without a mask: every MHA is
    IHA with P pseudo-heads, for every P >= 1; for every P >= 2 some IHA is no MHA, whatever its heads and output
    projection
theorem2_token_causal
    for every ordered field, positive increasing function e of the score and all sizes: both halves hold under the
    token-causal mask
theorem2_flat_causal
    for every ordered field, positive increasing function e of the score and all sizes: both halves hold under the
    flat causal mask, the second for N >= 2
separation_rat
    over the rationals, with an explicit function e of the score: the corrected example is 3/5 at 1 and 24/13 at 2, so
    it is not additive
"""),
)

THEOREM_3 = (*_proofs("Theorem3.v", """
theorem3
    for every commutative ring, N, d, H, k <= H^2, A and X: the first k d columns of linear IHA with H heads and P = H
    are the bank [X, AX, ..., A^(k-1) X]
theorem3_ceil_sqrt
    for every commutative ring, N, d, k, A and X: ceil(sqrt k) heads of linear IHA output the bank
rank_one_bank
    for every way to write the all-ones H x L matrix, L <= H, as a sum of H rank-one matrices c_i g_i^T with at most P
    non-zero entries in each c_i and g_i: H heads with P pseudo-heads output the bank of every k <= H L
tiled_bank
    for every commutative ring, P >= 1 and L <= H with ceil(H/P) ceil(L/P) <= H: H heads with P pseudo-heads output
    the bank of every k <= H L
tiled_bank_square
    for every commutative ring, s >= 1 with s^2 <= H and k <= H^2: P = ceil(H/s) pseudo-heads are enough
tiled_bank_HPP
    for every commutative ring and every P that divides H, P^2 <= H: H heads output the bank of every k <= H P^2
signed_bank
    for every commutative ring in which 2 is invertible: 3 heads with P = 2 output the bank of every k <= 9
polynomial_filter_parameters
    for every N, d and H: IHA with P = H has 2N(N+d)H + d(N+d)H^2 + 4H^3 parameters
tiled_filter_parameters
    for every N, d, H, P and L: tiled IHA has 2N(N+d)H + d(N+d)HL + 4H^2 P parameters
iha_smaller
    for every N, d, k and H, with a = k - H and b = H^2 - k: IHA with P = H is smaller than MHA with k heads if and
    only if (N+d)(2aN - bd) > 4H^3
crossover
    for every d >= 1, k >= 1 and N > k d: IHA with ceil(sqrt k) heads is smaller than MHA with k if and only if k >= 3
"""), *_MULTI_HEAD)

THEOREM_4 = (
    *_proofs("Theorem4.v", """
theorem4
    for every ordered field, N, H with H^2 >= N and tokens: the first N columns of IHA with hard attention, H heads
    and P = H are all cyclic shifts of the tokens
theorem4_ceil_sqrt
    for every ordered field, N and tokens: ceil(sqrt N) heads of IHA output all cyclic shifts
theorem4_column
    for every ordered field, N, H and tokens: column c of the H^2 columns is the shift by c, modulo N
multi_head_shift
    for every ordered field, N and number of heads: head h of MHA with hard attention outputs the shift by h
softened_column
    for every ordered field, N, H and e with e(0) = 1 and e(1) = b > 0: column c at token i is t + (sum of the tokens
    - N t) / (b + N - 1), where t is token i + c modulo N
recovered_iff
    for every ordered field, N, H >= 1, D and e with e(0) = 1 and e(1) = b > 0: rounding recovers all integer tokens
    that differ by at most D if and only if b > (N-1)(2D-1)
"""),
    *_proofs("CPM3.v", """
layer_counts
    for every ordered field, N <= H^2, M, G and natural tokens: the layer and one hidden unit for each of the N^2
    ordered pairs output CPM-3
multi_head_counts
    for every ordered field, N, M, G and natural tokens: N heads of MHA and the same hidden units output CPM-3
softened_layer_counts
    for every N <= H^2, M, G and natural tokens that differ by at most D: so does the layer at a finite temperature
    with b > (N-1)(2D-1), followed by rounding
layer_counts_short
    for every N <= N_max <= H^2, M, G >= 1 and natural tokens x: the layer of N_max tokens outputs CPM-3 of N tokens
    given as (G+2)x and padded with 1, with modulus (G+2)M
order_blind_iff
    for every N >= 3, M >= 1 and G: exchanging j1 and j2 never matters if and only if G = 1 modulo M
order_seen_iff
    for every N >= 3, M >= 1 and G >= 1: exchanging two tokens of a pair that counts, different modulo M, always makes
    it count no more if and only if gcd(G-1, M) = 1
large_G_blind
    for every N >= 3 and M >= 1: G = 2M + 1 exceeds 2M, and the order of the pair never matters
"""),
    *_proofs("Counts.v", """
iha_attention_counts
    for every N, with H = ceil(sqrt N): the weights of IHA have 2HN(N+1) + (N+1)H^2 + 4H^3 entries
mha_attention_counts
    for every N: the weights of MHA with N heads have 2N^2(N+1) + N(N+1) entries
paper_upper_bound_sqrt
    for every N: IHA and its hidden units have at most 37 N^2.5 + N^3 parameters
attention_smaller
    for every N: the attention of IHA has fewer parameters than that of MHA if and only if N = 4 or N >= 6
total_smaller
    for every N: IHA with its hidden units has fewer parameters than MHA with its own if and only if N = 4 or N >= 6
mha_lower_bound
    for every N: MHA with its hidden units has at least 4 N^3 parameters if and only if N <= 4
"""),
)

LOWER_BOUNDS = (
    *_proofs("Reductions.v", """
iha_is_mha_hh
    for every commutative ring and all sizes: linear IHA is linear MHA with H^2 heads and an output projection
iha_is_mha_hpp
    for every commutative ring and all sizes: linear IHA is linear MHA with H P^2 heads and an output projection
"""),
    *_proofs("OneClass.v", """
one_head_one_class
    for every field with at least 3 elements, N, d and A: two non-zero powers of A that one linear head applies, each
    in one of its columns, are multiples of each other
free_heads_bound
    for every field with at least 3 elements, N, d >= 1, k and A: linear heads of any widths that output the bank [X,
    AX, ..., A^(k-1) X], its columns in any order, are at least as many as the classes of non-zero powers
classes_suffice
    for every field, N, d, k and A: as many heads as there are classes of powers are enough for that
ordered_heads_bound
    for every field with at least 3 elements, d >= 1 and A: with the columns in order there are at least t heads if
    the first t <= k powers are not 0 and no two neighbours among them are multiples of each other
two_elements_two_classes
    over a field with two elements one linear head applies two powers that are no multiples of each other
"""),
    *_proofs("LowerBounds.v", """
iha_position_only_bounds
    for every field, N, d >= 1, H, P, k and A: linear IHA whose queries and keys read positions only, with an output
    projection, outputs the bank [X, AX, ..., A^(k-1) X] only if H^2 >= s and H P^2 >= s, s = dim span(I, A, ...,
    A^(k-1))
iha_bounds
    for every field with at least 3 elements, N, d >= 1, H, P, k and A: linear IHA with any weights and an output
    projection outputs the bank only if H^2 >= s and H P^2 >= s, s = dim span(I, A, ..., A^(k-1))
least_heads_projected
    for every field with at least 3 elements, N, d >= 1, k and A: H heads of linear IHA with an output projection, and
    some P, output the bank for some weights if and only if H >= ceil(sqrt s), s = dim span(I, A, ..., A^(k-1))
least_heads
    for every field with at least 3 elements, d >= 1, k and A whose k powers are independent: H heads of linear IHA,
    and some P, start with the bank for some weights if and only if H >= ceil(sqrt k)
least_heads_ordered
    for every field with at least 3 elements, d >= 1, k and A: H heads of one width v, H v >= k d, start with the bank
    for some weights of linear IHA if and only if H >= min(s, ceil(sqrt k)), s = dim span(I, A, ..., A^(k-1))
least_heads_mha_projected
    for every field with at least 3 elements, d >= 1, k and A: H heads of linear MHA with an output projection output
    the bank for some weights if and only if H >= s, s = dim span(I, A, ..., A^(k-1))
path_least_heads
    for every field with at least 3 elements, d >= 1, k <= N and the directed path of N tokens: H heads of linear IHA
    start with the bank for some weights if and only if H >= ceil(sqrt k)
"""),
)
