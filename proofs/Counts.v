(* Theorem 4 (7): how many parameters the two constructions for CPM-3 have.   *)
(*                                                                            *)
(* N = N_max tokens.  IHA: H = ceil(sqrt N) heads of width H, so H^2 columns; *)
(* MHA: N heads of width 1, so N columns.  Both feed one hidden unit for each *)
(* of the N^2 ordered pairs, and one output weight for each unit.             *)
From Coq Require Import Lia.
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem3 Theorem4.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.

(* ------------------------------------------------------------------------ *)
(** * The counts, and the weights that they count *)

Definition iha_attention N : nat :=
  let H := ceil_sqrt N in 2 * H * N * (N + 1) + (N + 1) * H ^ 2 + 4 * H ^ 3.
Definition mha_attention N : nat := 2 * N ^ 2 * (N + 1) + N * (N + 1).

(* Hidden units that read some columns, and their output weights.             *)
Definition mlp_parameters columns units : nat := columns * units + units.

Definition iha_total N : nat :=
  iha_attention N + mlp_parameters (ceil_sqrt N ^ 2) (N ^ 2).
Definition mha_total N : nat := mha_attention N + mlp_parameters N (N ^ 2).

(** The parameters of the layer of Theorem 4, counted by their shapes. *)
Theorem iha_attention_counts (F : realFieldType) n :
  parameters (cyclic_shifts F n (ceil_sqrt n.+1)) = iha_attention n.+1.
Proof.
rewrite /parameters /iha_attention; move: (ceil_sqrt _) => H.
rewrite !expnS !expn0 !muln1 -!plusE -!multE; lia.
Qed.

(** The same for MHA with N heads. *)
Theorem mha_attention_counts (F : realFieldType) n :
  mha_parameters (@shift_head_q F n n.+1) (@shift_head_k F n n.+1) (@shift_head_v F n n.+1)
  = mha_attention n.+1.
Proof.
rewrite /mha_parameters /mha_attention card_ord.
rewrite !expnS !expn0 !muln1 -!plusE -!multE; lia.
Qed.

(** The columns that the hidden units read: H^2 of IHA. *)
Lemma iha_columns H : \sum_(h < H) H = H ^ 2.
Proof. by rewrite columns_number mulnn. Qed.

Lemma mha_totalE N : mha_total N = 3 * N ^ 3 + 4 * N ^ 2 + N.
Proof.
rewrite /mha_total /mha_attention /mlp_parameters !expnS !expn0 !muln1.
rewrite -!plusE -!multE; lia.
Qed.

(* ------------------------------------------------------------------------ *)
(** * The size of ceil(sqrt N) *)

(* From MathComp's order and operations to those that lia and nia know.       *)
Ltac peano :=
  repeat match goal with E : is_true (leq _ _) |- _ => move/ssrnat.leP: E => E end;
  try apply/ssrnat.leP; change addn with Nat.add in *; change muln with Nat.mul in *.

(* H = h + 1 with h^2 < N <= H^2.                                             *)
Lemma ceil_sqrtP N : 0 < N ->
  exists h, [/\ ceil_sqrt N = h.+1, h * h < N & N <= h.+1 * h.+1].
Proof.
case: N => // n _; have := ceil_sqrt_ge n.+1; have := ceil_sqrt_pred n.
by case: (ceil_sqrt _) => // h lt_N le_N; exists h.
Qed.

Lemma root_excess N : 0 < N -> let H := ceil_sqrt N in H * H <= N + 2 * H.
Proof. by move=> /ceil_sqrtP[h [-> lt_N le_N]] /=; peano; nia. Qed.

Lemma root_le9 N : 5 <= N -> let H := ceil_sqrt N in 5 * (H * H) <= 9 * N.
Proof.
move=> N_ge; have /ceil_sqrtP[h [-> lt_N _]] : 0 < N by apply: leq_trans N_ge.
by case: h lt_N => [|[|h]] lt_N /=; peano; nia.
Qed.

Lemma root_le8 N : 10 <= N -> let H := ceil_sqrt N in 5 * (H * H) <= 8 * N.
Proof.
move=> N_ge; have /ceil_sqrtP[h [-> lt_N _]] : 0 < N by apply: leq_trans N_ge.
by case: h lt_N => [|[|[|h]]] lt_N /=; peano; nia.
Qed.

(* ------------------------------------------------------------------------ *)
(** * The paper's upper bound 37 N^2.5 + N^3 *)

Lemma attention_le N : 5 <= N -> iha_attention N <= 7 * N ^ 2 * ceil_sqrt N.
Proof.
move=> N_ge; have := root_le9 N_ge; rewrite /iha_attention; move: (ceil_sqrt N) => H /= H_le.
have H_leN : H <= N by peano; nia.
have HH_le : 2 * (H * H) <= N * N by peano; nia.
have t1 : 2 * H * N * (N + 1) <= 3 * (N * N * H) by peano; nia.
have t2 : (N + 1) * (H * H) <= 2 * (N * N * H) by peano; nia.
have t3 : 4 * (H * (H * H)) <= 2 * (N * N * H) by peano; nia.
by rewrite !expnS !expn0 !muln1; peano; lia.
Qed.

Lemma total_le N : 5 <= N -> iha_total N <= N ^ 3 + 10 * N ^ 2 * ceil_sqrt N.
Proof.
move=> N_ge; have N_gt0 : 0 < N by apply: leq_trans N_ge.
have := attention_le N_ge; have := root_excess N_gt0; rewrite /iha_total /mlp_parameters.
have /ceil_sqrtP[h [-> _ _]] := N_gt0; move: (iha_attention N) h.+1 (ltn0Sn h) => a H H_gt0.
move=> /= excess a_le.
have t1 : H * H * (N * N) <= N * (N * N) + 2 * (N * N * H) by peano; nia.
have t2 : N * N <= N * N * H by peano; nia.
by move: a_le; rewrite !expnS !expn0 !muln1 => a_le; peano; lia.
Qed.

(* c N^2 H squared, where 5 H^2 <= 9 N.                                       *)
Lemma square_le N c x : 5 <= N -> x <= c * N ^ 2 * ceil_sqrt N ->
  5 * x ^ 2 <= 9 * c ^ 2 * N ^ 5.
Proof.
move=> N_ge x_le; have := root_le9 N_ge; move: (ceil_sqrt N) x_le => H x_le /= H_le.
apply: (@leq_trans (5 * (c * N ^ 2 * H) ^ 2)); first by rewrite leq_mul2l leq_exp2r.
have : c * c * (N * N * (N * N)) * (5 * (H * H)) <= c * c * (N * N * (N * N)) * (9 * N).
  by rewrite leq_mul2l H_le orbT.
by rewrite !expnS !expn0 !muln1 => le; peano; lia.
Qed.

(* The bound counts N^2 (N - 1) + N^2 = N^3 beside 37 N^2.5.  To say          *)
(*   T <= c N^2.5 + N^3   without real numbers, both sides are squared:       *)
(*   (T - N^3)^2 <= c^2 N^5,   with the subtraction that stops at 0.          *)

(** Attention alone is at most 17/sqrt 2 N^2.5, for every N; *)
Theorem attention_bound N : 2 * iha_attention N ^ 2 <= 17 ^ 2 * N ^ 5.
Proof.
have [N_ge | N_lt] := leqP 5 N; last by case: N N_lt => [|[|[|[|[|]]]]].
have := square_le N_ge (attention_le N_ge); rewrite -[7 ^ 2]/49 -[17 ^ 2]/289.
move: (iha_attention N ^ 2) (N ^ 5) => a n.
move=> le; peano; lia.
Qed.

(** the total is at most 10 sqrt 2 N^2.5 + N^3; *)
Theorem total_bound N : (iha_total N - N ^ 3) ^ 2 <= 200 * N ^ 5.
Proof.
have [N_ge | N_lt] := leqP 5 N; last by case: N N_lt => [|[|[|[|[|]]]]].
have rest_le : iha_total N - N ^ 3 <= 10 * N ^ 2 * ceil_sqrt N by rewrite leq_subLR total_le.
have := square_le N_ge rest_le; rewrite -[10 ^ 2]/100; move: (_ ^ 2) (N ^ 5) => a n.
move=> le; peano; lia.
Qed.

(** both constants are the best, since N = 2 attains them. *)
Theorem bounds_attained :
  2 * iha_attention 2 ^ 2 = 17 ^ 2 * 2 ^ 5 /\ (iha_total 2 - 2 ^ 3) ^ 2 = 200 * 2 ^ 5.
Proof. by []. Qed.

(** The paper's upper bound holds for every N: the total is at most
    37 N^2.5 + N^2 (N - 1) + N^2. *)
Theorem paper_upper_bound N : 0 < N ->
  (iha_total N - (N ^ 2 * (N - 1) + N ^ 2)) ^ 2 <= 37 ^ 2 * N ^ 5.
Proof.
move=> N_gt0; have -> : N ^ 2 * (N - 1) + N ^ 2 = N ^ 3.
  by rewrite -mulnSr subn1 prednK // -expnSr.
by apply: leq_trans (total_bound N) _; rewrite leq_mul2r orbT.
Qed.

(** It holds as well, with the bound it prints, for N (N - 1) hidden units. *)
Corollary paper_upper_bound_distinct N : 0 < N ->
  let total := iha_attention N + mlp_parameters (ceil_sqrt N ^ 2) (N * (N - 1)) in
  (total - (N ^ 2 * (N - 1) + N ^ 2)) ^ 2 <= 37 ^ 2 * N ^ 5.
Proof.
move=> N_gt0 /=; apply: leq_trans (paper_upper_bound N_gt0).
rewrite leq_exp2r // leq_sub2r // leq_add2l.
have units_le : N * (N - 1) <= N ^ 2 by rewrite -mulnn leq_mul2l leq_subr orbT.
by rewrite leq_add // leq_mul2l units_le orbT.
Qed.

(** The same with a real square root, in any real closed field. *)
Corollary paper_upper_bound_sqrt (R : rcfType) N :
  ((iha_total N)%:R <= 37%:R * N%:R ^+ 2 * Num.sqrt N%:R + N%:R ^+ 3 :> R)%R.
Proof.
set b := (37%:R * _ * _)%R; have b_ge0 : (0 <= b)%R.
  by rewrite !mulr_ge0 ?exprn_ge0 ?ler0n ?sqrtr_ge0.
have bb : (b ^+ 2 = (37 ^ 2 * N ^ 5)%:R)%R.
  rewrite /b 2!exprMn sqr_sqrtr ?ler0n // natrM !natrX -mulrA; congr (_ * _)%R.
  by rewrite -[(_ ^+ 2 ^+ 2)%R]exprM -exprSr.
apply: (@le_trans _ _ ((iha_total N - N ^ 3) + N ^ 3)%:R)%R.
  by rewrite ler_nat addnC -leq_subLR.
rewrite natrD natrX ler_add2r -(@ler_pexpn2r _ 2) ?nnegrE ?ler0n // bb -natrX ler_nat.
by apply: leq_trans (total_bound N) _; rewrite leq_mul2r orbT.
Qed.

(* ------------------------------------------------------------------------ *)
(** * When IHA is smaller *)

(** Attention alone: IHA has fewer parameters than MHA if and only if N = 4 or
    N >= 6; *)
Theorem attention_smaller N : 0 < N ->
  (iha_attention N < mha_attention N) = (N == 4) || (6 <= N).
Proof.
move=> N_gt0; have [N_ge | N_lt] := leqP 10 N; last first.
  by move: N N_gt0 N_lt; do 10 (case=> [//|]).
rewrite (leq_trans _ N_ge) // orbT; have := root_le8 N_ge.
rewrite /iha_attention /mha_attention; move: (ceil_sqrt N) => H /= H_le.
have HN : 2 * H <= N by peano; nia.
rewrite !expnS !expn0 !muln1; peano; nia.
Qed.

(** and the same in total. *)
Theorem total_smaller N : 0 < N ->
  (iha_total N < mha_total N) = (N == 4) || (6 <= N).
Proof.
move=> N_gt0; have [N_ge | N_lt] := leqP 10 N; last first.
  by move: N N_gt0 N_lt; do 10 (case=> [//|]).
rewrite (leq_trans _ N_ge) // orbT mha_totalE; have := root_le8 N_ge.
rewrite /iha_total /iha_attention /mlp_parameters; move: (ceil_sqrt N) => H /= H_le.
have HN : 2 * H <= N by peano; nia.
have t1 : 2 * H * N * (N + 1) <= N * N * (N + 1) by peano; nia.
have t2 : 5 * (H * H) * (N + 1) <= 8 * N * (N + 1) by rewrite leq_mul2r H_le orbT.
have t3 : 5 * (H * H) * H <= 8 * N * H by rewrite leq_mul2r H_le orbT.
have t4 : 5 * (H * H) * (N * N) <= 8 * N * (N * N) by rewrite leq_mul2r H_le orbT.
have t5 : 10 * (N * N) <= N * (N * N) by rewrite leq_mul2r N_ge orbT.
have t6 : 2 * H * N <= N * N by rewrite leq_mul2r HN orbT.
by rewrite !expnS !expn0 !muln1; peano; nia.
Qed.

(** Nevertheless the total of MHA is never more than 3 times that of IHA: the
    hidden layer dominates both. *)
Theorem total_ratio N : mha_total N <= 3 * iha_total N.
Proof.
rewrite mha_totalE /iha_total /iha_attention /mlp_parameters.
have := ceil_sqrt_ge N; move: (ceil_sqrt N) => H /= H_ge.
have t : N * (N * N) <= H * H * (N * N) by rewrite leq_mul2r H_ge orbT.
have t' : N * (N + 1) <= H * N * (N + 1).
  by rewrite leq_mul2r; case: H N H_ge {t} => [|H] [|N] //=; rewrite leq_pmull ?orbT.
by rewrite !expnS !expn0 !muln1; peano; lia.
Qed.

(** The ratio tends to 3: what is missing is at most 30 N^2 ceil(sqrt N). *)
Theorem total_ratio_limit N : 5 <= N ->
  3 * iha_total N <= mha_total N + 30 * N ^ 2 * ceil_sqrt N.
Proof.
move=> /total_le; rewrite mha_totalE; move: (iha_total N) (ceil_sqrt N) => t H.
by rewrite !expnS !expn0 !muln1 => le; peano; lia.
Qed.

(** The paper's lower bound for MHA, 4 N^3, holds for N <= 4 only. *)
Theorem mha_lower_bound N : (4 * N ^ 3 <= mha_total N) = (N <= 4).
Proof.
rewrite mha_totalE; have [N_le | N_gt] := leqP N 4; first by case: N N_le => [|[|[|[|[|]]]]].
by apply/negbTE; rewrite -ltnNge !expnS !expn0 !muln1; peano; nia.
Qed.

(** Counting the N (N - 1) pairs with j1 <> j2 only, as the paper does, its
    total for MHA is 3 N^3 + 3 N^2, and 4 N^3 is a lower bound for N <= 3 only. *)
Theorem mha_lower_bound_distinct N :
  let total := mha_attention N + mlp_parameters N (N * (N - 1)) in
  total = 3 * N ^ 3 + 3 * N ^ 2 /\ (4 * N ^ 3 <= total) = (N <= 3).
Proof.
have E : mha_attention N + mlp_parameters N (N * (N - 1)) = 3 * N ^ 3 + 3 * N ^ 2.
  rewrite /mha_attention /mlp_parameters; case: N => // n; rewrite subn1 /=.
  by rewrite !expnS !expn0 !muln1 -!plusE -!multE; lia.
rewrite /= E; split=> //; have [N_le | N_gt] := leqP N 3.
  by case: N N_le {E} => [|[|[|[|]]]].
by apply/negbTE; rewrite -ltnNge !expnS !expn0 !muln1; peano; nia.
Qed.
