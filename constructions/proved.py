"""The machine-checked theorems behind the numbered results: what each says in words, its name and its file.

The files stand in ``proofs/``; ``proofs/README.md`` says how to read them. A record counts as evidence only while its
file is as the proof checker accepted it (:mod:`iha_theory.proofs`). The sentences use the letters of the paper: N tokens
(at least 1), d features, k powers, H heads, P pseudo-heads; "positive function" is any function of the score, with
values above 0, that stands for the exponential: its values are divided by the sum of their row.
"""

from __future__ import annotations

from pathlib import Path

from iha_theory.claims import Proof

FOLDER = Path(__file__).parent.parent / "proofs"


def _proofs(file: str, **said: str) -> tuple[Proof, ...]:
    return tuple(Proof(name, file, says, FOLDER) for name, says in said.items())


BANK = "[X, AX, ..., A^(k-1) X]"

THEOREM_1 = (
    *_proofs(
        "Theorem3.v",
        multi_head_filter=f"for every commutative ring, N, d, k, A and X: k heads of linear MHA output {BANK}",
        multi_head_filter_parameters="for every N, d and k these heads have 2N(N+d)k + d(N+d)k parameters",
    ),
    *_proofs(
        "OneClass.v",
        one_width_bound="for every field with at least 3 elements, d >= 1, k >= 2 and A not a multiple of I: linear MHA "
        f"whose H heads have one width v with H v >= k d and start with {BANK}, for all X, has H >= k",
    ),
    *_proofs(
        "LowerBounds.v",
        least_heads_mha="under the same premises such a layer of H heads exists if and only if H >= k",
    ),
)

THEOREM_2 = (
    *_proofs(
        "Layer.v",
        mha_is_iha="for every ring, size, row-wise attention and mask on tokens: MHA is IHA with P = 1 and identity mixing",
        interleaved_is_stacked="for every mask on pairs (pseudo-head, token): the interleaved order of the virtual tokens "
        "gives the output of the stacked order",
    ),
    *_proofs(
        "Theorem2_Inclusion.v",
        parameter_count="for every H, P and width: IHA has Q + 4 H^2 P parameters, Q those of MHA with its base weights",
        inclusion_token_mask="for every ordered field, size, P and mask on tokens, and every weighting that P copies share "
        "evenly: copies of each head, collapsed with coefficients of sum 1, are MHA",
        inclusion_hard="the same for hard attention, R reading any one pseudo-head",
        inclusion_flat_last="for every function of the score, size and P >= 1: under the flat causal mask the copies are "
        "causal MHA when R reads the last pseudo-head",
        inclusion_window_last="the same with a window of W tokens and of W P virtual tokens",
    ),
    *_proofs(
        "Theorem2_Flat.v",
        flat_causal_error="for every positive function and size: when R reads pseudo-head J under the flat causal mask the "
        "error is -(P-J) p (1-p) / (P - (P-J) p) (v - u)",
        flat_causal_exact="it vanishes at token n if and only if J = P, n is the first token, or v = u there",
        flat_causal_fails_rat="over the rationals, two tokens, P = 2, first pseudo-head: 1/2 where causal MHA has 2/3",
    ),
    *_proofs(
        "Theorem2_Strictness.v",
        mha_layer_linear="for every N, number of heads, width, mask, output projection and weighting of row sum 1: MHA is "
        "linear on repeated tokens",
        one_pseudo_head_linear="so is IHA with one pseudo-head, whatever its mixing, for every positive function",
    ),
    *_proofs(
        "Theorem2_Examples.v",
        printed_is_identity="for every positive function e, size, P and mask: the printed example outputs x W_V on repeated "
        "tokens",
        corrected_token="for every function e, size and mask on tokens: with signs +, - on the values it outputs "
        "(e(s) - e(-s)) / (e(s) + e(-s)) x W_V",
        corrected_additive_iff="for every positive increasing e and mask on tokens, that output is additive in x if and only "
        "if W_V = 0 or W_Q W_K^T is skew-symmetric",
        zero_mixing_stays="for every function e: a third pseudo-head with zero mixing leaves e(0) in the denominator",
    ),
    *_proofs(
        "Theorem2.v",
        theorem2_no_mask="for every ordered field, positive increasing function and size, without a mask: every MHA is IHA "
        "with P pseudo-heads, P >= 1; for P >= 2 some IHA is no MHA, whatever its heads and projection",
        theorem2_token_causal="the same under the token-causal mask",
        theorem2_flat_causal="the same under the flat causal mask, the second half for N >= 2 tokens",
        separation_rat="over the rationals, with an explicit function: the corrected example has f(1) = 3/5, f(2) = 24/13",
    ),
)

THEOREM_3 = (
    *_proofs(
        "Theorem3.v",
        theorem3="for every commutative ring, N, d, H, k <= H^2, A and X: linear IHA with H heads and P = H pseudo-heads "
        f"outputs {BANK} in its first k d columns",
        theorem3_ceil_sqrt="so it does with H = ceil(sqrt k), for every k",
        rank_one_bank="for every way to write the all-ones H x L matrix, L <= H, as H rank-one matrices c_i g_i^T with at "
        "most P non-zero entries in each c_i and g_i: H heads with P pseudo-heads output the bank of k <= H L",
        tiled_bank="for every P >= 1 and L <= H with ceil(H/P) ceil(L/P) <= H: the tiled layer outputs the bank of k <= H L",
        tiled_bank_square="for every s >= 1 with s^2 <= H and every k <= H^2: P = ceil(H/s) pseudo-heads are enough",
        tiled_bank_HPP="for every P that divides H with P^2 <= H: H heads reach k = H P^2 powers",
        signed_bank="over every commutative ring in which 2 is invertible: 3 heads with P = 2 output the bank of k <= 9",
        multi_head_filter=f"for every commutative ring, N, d, k, A and X: k heads of linear MHA output {BANK}",
        polynomial_filter_parameters="for every N, d and H: IHA with P = H has 2N(N+d)H + d(N+d)H^2 + 4H^3 parameters",
        tiled_filter_parameters="for every N, d, H, P and L: tiled IHA has 2N(N+d)H + d(N+d)HL + 4H^2 P parameters",
        multi_head_filter_parameters="for every N, d and k: MHA has 2N(N+d)k + d(N+d)k parameters",
        iha_smaller="for every N, d, k and H, with a = k - H and b = H^2 - k: IHA is smaller than MHA if and only if "
        "(N+d)(2aN - bd) > 4H^3",
        crossover="for every d >= 1, k >= 1 and N > k d: IHA with H = ceil(sqrt k) is smaller than MHA if and only if k >= 3",
    ),
)

THEOREM_4 = (
    *_proofs(
        "Theorem4.v",
        theorem4="for every ordered field, N, H with H^2 >= N and tokens x: the first N columns of IHA with hard attention, "
        "H heads and P = H are all cyclic shifts of x",
        theorem4_ceil_sqrt="so they are with H = ceil(sqrt N), for every N",
        theorem4_column="for every N and H: column c, of H^2, is the shift by c modulo N",
        multi_head_shift="for every N and number of heads: head h of MHA with hard attention outputs the shift by h",
        softened_column="for every function with values b > 0 at 1 and 1 at 0: column c at token i is "
        "x_s + (sum x - N x_s) / (b + N - 1), with s = i + c modulo N",
        recovered_iff="for the same functions, every N, H >= 1 and D: rounding recovers all integer tokens that differ by at "
        "most D if and only if b > (N-1)(2D-1)",
    ),
    *_proofs(
        "CPM3.v",
        layer_counts="for every N <= H^2, M, G and natural tokens: IHA with one hidden unit for each of the N^2 ordered "
        "pairs outputs CPM-3, any modulo activation that is right at the naturals",
        multi_head_counts="for every N, M, G and natural tokens: so does MHA with N heads",
        softened_layer_counts="so does IHA at a finite temperature, with b > (N-1)(2D-1), followed by rounding",
        layer_counts_short="for every N <= N_max <= H^2 and G >= 1: so does IHA built for N_max, with tokens (G+2)x, padding 1 "
        "and modulus (G+2)M",
        order_blind_iff="for every N >= 3, M >= 1 and G: exchanging j1 and j2 never matters if and only if G = 1 modulo M",
        order_seen_iff="for every N >= 3, M >= 1 and G >= 1: exchanging two tokens that differ modulo M always matters if "
        "and only if gcd(G-1, M) = 1",
        large_G_blind="for every N >= 3 and M >= 1: G = 2M + 1 is above 2M, and the order does not matter",
    ),
    *_proofs(
        "Counts.v",
        iha_attention_counts="for every N: the weights of IHA with H = ceil(sqrt N) have 2HN(N+1) + (N+1)H^2 + 4H^3 entries",
        mha_attention_counts="for every N: the weights of MHA with N heads have 2N^2(N+1) + N(N+1) entries",
        paper_upper_bound_sqrt="for every N: IHA with its hidden units has at most 37 N^2.5 + N^3 parameters",
        attention_smaller="for every N >= 1: the attention of IHA has fewer parameters if and only if N = 4 or N >= 6",
        total_smaller="for every N >= 1: the whole of IHA has fewer parameters if and only if N = 4 or N >= 6",
        mha_lower_bound="for every N: the whole of MHA has at least 4 N^3 parameters if and only if N <= 4",
    ),
)

LOWER_BOUNDS = (
    *_proofs(
        "Reductions.v",
        iha_is_mha_hh="for every commutative ring and size: linear IHA is linear MHA with H^2 heads and an output projection",
        iha_is_mha_hpp="for every commutative ring and size: linear IHA is linear MHA with H P^2 heads and an output projection",
    ),
    *_proofs(
        "OneClass.v",
        one_head_one_class="for every field with at least 3 elements: two non-zero powers of A that one linear head outputs, "
        "each at one of its columns, are multiples of each other",
        free_heads_bound="for such a field and d >= 1: heads of any widths, columns in any order, are at least rho",
        classes_suffice="for every field: as many heads as there are classes of powers output the bank, columns in any order",
        ordered_heads_bound="for such a field and d >= 1: heads of any widths with the columns in order are at least t when "
        "no two neighbours among the first t <= k powers, none of them 0, are multiples of each other",
        two_elements_two_classes="over a field with two elements one head outputs two powers that are no multiples",
    ),
    *_proofs(
        "LowerBounds.v",
        iha_position_only_bounds="for every field, N, d >= 1, H, P, k and A: linear IHA whose queries and keys read positions "
        "only, with any output projection, outputs the bank only if H^2 >= s and H P^2 >= s",
        iha_bounds="the same for any weights, over every field with at least 3 elements",
        least_heads_projected="for such a field and d >= 1: H heads of linear IHA with an output projection, and some P, output "
        "the bank if and only if H >= ceil(sqrt s)",
        least_heads="for such a field, d >= 1 and independent powers: H heads of linear IHA, and some P, start with the bank "
        "if and only if H >= ceil(sqrt k)",
        least_heads_ordered="for such a field, d >= 1 and every A: H heads of one width v, H v >= k d, start with the bank if "
        "and only if H >= min(s, ceil(sqrt k))",
        least_heads_mha_projected="for such a field and d >= 1: H heads of linear MHA with an output projection output the "
        "bank if and only if H >= s",
        path_least_heads="for such a field, d >= 1, k <= N and the path of N tokens: H heads of linear IHA start with the bank "
        "if and only if H >= ceil(sqrt k)",
    ),
)
