(* Theorem 3: for each way in which its statement could have been wrong, the  *)
(* wrong statement is refuted here on a small instance.  What the theorem     *)
(* says of these layers is not used: the program of Computable.v, proved      *)
(* equal to the layer, evaluates them.                                        *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem3 Computable.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* A = [[1, 2], [3, 4]] and X = (5, 7)^T over the integers.                   *)
Definition a (i j : nat) : int := nth 0 (nth [::] [:: [:: 1; 2%:Z]; [:: 3%:Z; 4%:Z]] i) j.
Definition x (i j : nat) : int := nth 0 [:: 5%:Z; 7%:Z] i.
Definition A : 'M[int]_2 := mat 2 2 a.
Definition X : 'M[int]_(2, 1) := mat 2 1 x.

Definition cpower_x (b : nat -> nat -> int) k i : int :=
  csum 2 (fun t => cpow 2 b k i t * x t 0).

Lemma power_entry b k (i : 'I_2) : (mat 2 2 b ^+ k *m X) i ord0 = cpower_x b k i.
Proof.
by rewrite mxE /cpower_x csumE; apply: eq_bigr => t _; rewrite -mat_cpow !mxE.
Qed.

(* The blocks of a linear layer that a program describes: N = 2, d = 1.       *)
Definition cblock H P L (c : cweights int) (h b i : nat) : int :=
  ciha H P 2 3 2 L (@clinear _) cno_mask c (ccode 1 x) h i b.

Lemma rank1 L (b : 'I_L) : tagnat.Rank b (ord0 : 'I_1) = b :> nat.
Proof.
rewrite tagnat.RankEsum addn0.
by rewrite -(big_ord_widen L (fun=> 1%N)) 1?ltnW // sum1_card card_ord.
Qed.

Lemma block_entry H P L (W : weights int H P 3 2 (\sum_(b < L) 1)) c (h : 'I_H) (b : 'I_L) i :
  same_weights (of_c H P 3 2 (\sum_(b < L) 1) c) W ->
  submxrow (iha id W (with_code X) h) b i ord0 = cblock H P L c h b i.
Proof.
move=> same; rewrite -(iha_same_weights _ _ same) -mat_ccode mxE ciha_linear rank1.
by rewrite /cblock sum1_card card_ord.
Qed.

Definition small_block H (h b : 'I_H) : 'M[int]_(2, 1) :=
  submxrow (iha id (polynomial_filter 1 H A) (with_code X) h) b.

Lemma small_blockE H (h b : 'I_H) i :
  small_block h b i ord0 = cblock H H H (cpolynomial_filter 1 1 H a) h b i.
Proof. exact: block_entry (cpolynomial_filterE 1 1 H a). Qed.

(* Two columns that differ in some row are different.                         *)
Lemma col_neq (M M' : 'M[int]_(2, 1)) i : M i ord0 != M' i ord0 -> M <> M'.
Proof. by move=> /eqP ne eq_M; apply: ne; rewrite eq_M. Qed.

(** The exponent is not off by one: no block is A^(h H + b + 1) X. *)
Theorem not_one_power_more (h b : 'I_2) : small_block h b <> A ^+ (h * 2 + b).+1 *m X.
Proof.
apply: (@col_neq _ _ ord0); rewrite small_blockE power_entry.
by case: h b => [[|[|//]] ?] [[|[|//]] ?]; vm_compute.
Qed.

(** The adjacency is A, not its transpose. *)
Theorem not_transposed (h b : 'I_2) : (0 < h + b)%N ->
  small_block h b <> A^T ^+ (h * 2 + b) *m X.
Proof.
have -> : A^T = mat 2 2 (fun i j => a j i) by apply/matrixP => i j; rewrite !mxE.
move=> hb; apply: (@col_neq _ _ ord0); rewrite small_blockE power_entry.
by case: h b hb => [[|[|//]] ?] [[|[|//]] ?]; vm_compute.
Qed.

(* The same layer with other base queries and keys.                           *)
Definition variant (q k : 'I_2 -> 'M[int]_2) : weights int 2 2 3 2 (\sum_(b < 2) 1) :=
  let W := polynomial_filter 1 2 A in
  Weights (fun m => col_mx 0 (q m)) (fun m => col_mx 0 (k m)) (w_v W)
          (alpha_q W) (alpha_k W) (alpha_v W) (collapse W).

Definition cvariant (q k : nat -> nat -> nat -> int) : cweights int :=
  let c := cpolynomial_filter 1 1 2 a in
  CWeights (fun m => cbelow 1 (q m)) (fun m => cbelow 1 (k m)) (cw_v c)
           (calpha_q c) (calpha_k c) (calpha_v c) (ccollapse c).

Lemma variantE q k (cq ck : nat -> nat -> nat -> int) :
  (forall m : 'I_2, mat 2 2 (cq m) = q m) -> (forall m : 'I_2, mat 2 2 (ck m) = k m) ->
  same_weights (of_c 2 2 3 2 (\sum_(b < 2) 1) (cvariant cq ck)) (variant q k).
Proof.
move=> qE kE; split; split=> // m; rewrite /= -?qE -?kE; last exact: (cplaceE _ 1 1).
  exact: (cbelowE 1 1).
exact: (cbelowE 1 1).
Qed.

(** W_K^m is [0; (A^m)^T]: with [0; A^m] the block A X is not had. *)
Theorem not_key_untransposed :
  submxrow (iha id (variant (fun m => A ^+ (m * 2)) (fun m => A ^+ m)) (with_code X) ord0)
           (inord 1) <> A *m X.
Proof.
apply: (@col_neq _ _ ord0).
rewrite (block_entry _ _ _ (variantE (cq := fun m => cpow 2 a (m * 2)) (ck := cpow 2 a) _ _)).
- by rewrite -[A]expr1 power_entry inordK //; vm_compute.
- by move=> m; rewrite mat_cpow.
by move=> m; rewrite mat_cpow.
Qed.

(** W_Q^m is [0; A^(m H)]: with [0; (A^(m H))^T], as printed once, the block
    A^2 X is not had unless A^2 is symmetric. *)
Theorem not_query_transposed :
  submxrow (iha id (variant (fun m => (A ^+ (m * 2))^T) (fun m => (A ^+ m)^T))
              (with_code X) (inord 1)) ord0 <> A ^+ 2 *m X.
Proof.
apply: (@col_neq _ _ ord0).
rewrite (block_entry _ _ _ (variantE (cq := fun m i j => cpow 2 a (m * 2) j i)
                                     (ck := fun m i j => cpow 2 a m j i) _ _)).
- by rewrite power_entry inordK //; vm_compute.
- by move=> m; rewrite -mat_cpow; apply/matrixP => i j; rewrite !mxE.
by move=> m; rewrite -mat_cpow; apply/matrixP => i j; rewrite !mxE.
Qed.

(** The queries carry the multiples of H, the keys the rest, not the reverse. *)
Theorem not_query_key_exchanged :
  submxrow (iha id (variant (fun m => A ^+ m) (fun m => (A ^+ (m * 2))^T)) (with_code X) ord0)
           (inord 1) <> A *m X.
Proof.
apply: (@col_neq _ _ ord0).
rewrite (block_entry _ _ _ (variantE (cq := cpow 2 a)
                                     (ck := fun m i j => cpow 2 a (m * 2) j i) _ _)).
- by rewrite -[A]expr1 power_entry inordK //; vm_compute.
- by move=> m; rewrite mat_cpow.
by move=> m; rewrite -mat_cpow; apply/matrixP => i j; rewrite !mxE.
Qed.

(* The alphas of Theorem 3 with P pseudo-heads, R picking pseudo-head j0.      *)
Definition pseudo_variant P (j0 : nat) : weights int 2 P 3 2 (\sum_(b < 2) 1) :=
  filter_weights 1 2 A
    (fun m h j => ((m == h) && (j == 0%N :> nat))%:R)
    (fun m _ j => (m == j :> nat)%:R) (fun m _ j => (m == j :> nat)%:R)
    (fun h h' j => ((h' == h) && (j == j0 :> nat))%:R).

Definition cpseudo_variant (j0 : nat) : cweights int :=
  cfilter 1 1 2 a
    (fun m h j => ((m == h) && (j == 0))%N%:R)
    (fun m _ j => (m == j)%:R) (fun m _ j => (m == j)%:R)
    (fun h h' j => ((h' == h) && (j == j0))%N%:R).

Lemma pseudo_variantE P j0 :
  same_weights (of_c 2 P 3 2 (\sum_(b < 2) 1) (cpseudo_variant j0)) (pseudo_variant P j0).
Proof.
split; split=> // m; rewrite /= -?mat_cpow; last exact: (cplaceE _ 1 1).
  exact: (cbelowE 1 1).
exact: (@ckeyE _ 1 1).
Qed.

(** One pseudo-head fewer loses the block A X. *)
Theorem not_one_pseudo_head_fewer :
  submxrow (iha id (pseudo_variant 1 0) (with_code X) ord0) (inord 1) <> A *m X.
Proof.
apply: (@col_neq _ _ ord0); rewrite (block_entry _ _ _ (pseudo_variantE 1 0)).
by rewrite -[A]expr1 power_entry inordK //; vm_compute.
Qed.

(** R picks the first pseudo-head: with the last the block X is lost. *)
Theorem not_last_pseudo_head :
  submxrow (iha id (pseudo_variant 2 1) (with_code X) ord0) ord0 <> A ^+ 0 *m X.
Proof.
apply: (@col_neq _ _ ord0); rewrite (block_entry _ _ _ (pseudo_variantE 2 1)).
by rewrite power_entry; vm_compute.
Qed.

(** k <= H^2 cannot be dropped: the layer with 2 heads does not give 5 powers. *)
Theorem not_one_head_fewer :
  first_columns _ (iha_output id (polynomial_filter 1 2 A) (with_code X)) <> bank A X 5.
Proof.
pose b4 : 'I_5 := inord 4; move=> /(congr1 (fun M => submxrow M b4 ord0 ord0)).
rewrite mxrowK power_entry 2!mxE [val _](rank1 b4) inordK // insubF; first by vm_compute.
by rewrite sum_nat_const card_ord sum1_card card_ord.
Qed.

(** The condition on the runs cannot be dropped: H = L = 3 with P = 2 has four
    tiles for three heads, and the last block is lost. *)
Theorem not_too_many_tiles :
  submxrow (iha id (tiled_filter 1 3 2 3 A) (with_code X) (inord 2)) (inord 2)
  <> A ^+ 8 *m X.
Proof.
apply: (@col_neq _ _ ord0); rewrite (block_entry _ _ _ (ctiled_filterE 1 1 3 2 3 a)).
by rewrite power_entry !inordK //; vm_compute.
Qed.

(* Vectors of three bits, of which at most two are 1.                         *)
Definition bits := (bool * bool * bool)%type.
Definition bit (v : bits) (i : nat) : bool :=
  if i is j.+1 then (if j is 0%N then v.1.2 else v.2) else v.1.1.
Definition sparse : seq bits :=
  [seq v <- [seq (u, z) | u <- [seq (x, y) | x <- [:: true; false], y <- [:: true; false]],
                          z <- [:: true; false]] | ~~ [&& v.1.1, v.1.2 & v.2]].
Definition odd_sums (c0 c1 c2 g0 g1 g2 : bits) : bool :=
  all (fun i => all (fun j => (bit c0 i && bit g0 j) (+) (bit c1 i && bit g1 j)
                              (+) (bit c2 i && bit g2 j)) (iota 0 3)) (iota 0 3).

Lemma no_odd_sums :
  all (fun c0 => all (fun c1 => all (fun c2 => all (fun g0 => all (fun g1 => all (fun g2 =>
    ~~ odd_sums c0 c1 c2 g0 g1 g2) sparse) sparse) sparse) sparse) sparse) sparse.
Proof. by vm_compute. Qed.

Definition bits_of (v : 'I_3 -> 'F_2) : bits :=
  (v (inord 0) != 0, v (inord 1) != 0, v (inord 2) != 0).

Lemma bits_ofE v (i : 'I_3) : bit (bits_of v) i = (v i != 0).
Proof. by rewrite -[in RHS](inord_val i); case: i => [[|[|[|//]]] ?]. Qed.

Lemma bits_of_sparse v : (#|support v| <= 2)%N -> bits_of v \in sparse.
Proof.
move=> small; have: ~~ [&& bit (bits_of v) 0, bit (bits_of v) 1 & bit (bits_of v) 2].
  apply/and3P => -[v0 v1 v2]; suff : (#|'I_3| <= 2)%N by rewrite card_ord.
  apply: leq_trans small; apply/subset_leq_card/subsetP => i _.
  by rewrite !inE -bits_ofE; case: i => [[|[|[|//]]] ?].
by case: (bits_of v) => [[[] []] []].
Qed.

Lemma odd_sum (x0 y0 x1 y1 x2 y2 : 'F_2) : x0 * y0 + x1 * y1 + x2 * y2 = 1 ->
  ((x0 != 0) && (y0 != 0)) (+) ((x1 != 0) && (y1 != 0)) (+) ((x2 != 0) && (y2 != 0)).
Proof.
by case: x0 y0 x1 y1 x2 y2 => [[|[|//]] ?] [[|[|//]] ?] [[|[|//]] ?] [[|[|//]] ?]
  [[|[|//]] ?] [[|[|//]] ?].
Qed.

(** 2 must be invertible for the signed mixing: modulo 2 no three rank-one
    matrices with at most two non-zero entries a side sum to all ones. *)
Theorem not_signed_mod_2 (c g : 'I_3 -> 'I_3 -> 'F_2) :
  (forall i, (#|support (c i)| <= 2)%N) -> (forall i, (#|support (g i)| <= 2)%N) ->
  ~ (forall i j, \sum_r c r i * g r j = 1).
Proof.
move=> c_sparse g_sparse ones; pose r k : 'I_3 := inord k.
have : odd_sums (bits_of (c (r 0%N))) (bits_of (c (r 1%N))) (bits_of (c (r 2%N)))
                (bits_of (g (r 0%N))) (bits_of (g (r 1%N))) (bits_of (g (r 2%N))).
  rewrite /odd_sums !all_iota; apply/forallP => i; rewrite all_iota; apply/forallP => j.
  have := ones i j; rewrite !big_ord_recl big_ord0 addr0 addrA => /odd_sum.
  have -> : ord0 = r 0%N by apply: val_inj; rewrite /= inordK.
  have -> : lift (r 0%N) (ord0 : 'I_2) = r 1%N by apply: val_inj; rewrite /= !inordK.
  have -> : lift (r 0%N) (lift ord0 ord0 : 'I_2) = r 2%N by apply: val_inj; rewrite /= !inordK.
  by rewrite !bits_ofE.
apply/negP; move: no_odd_sums.
move=> /allP/(_ _ (bits_of_sparse (c_sparse (r 0%N)))).
move=> /allP/(_ _ (bits_of_sparse (c_sparse (r 1%N)))).
move=> /allP/(_ _ (bits_of_sparse (c_sparse (r 2%N)))).
move=> /allP/(_ _ (bits_of_sparse (g_sparse (r 0%N)))).
move=> /allP/(_ _ (bits_of_sparse (g_sparse (r 1%N)))).
by move=> /allP/(_ _ (bits_of_sparse (g_sparse (r 2%N)))).
Qed.

(** MHA: head i gives A^i X, not A^(i + 1) X. *)
Theorem not_one_power_more_mha (i : 'I_3) :
  mha id (@filter_head_q _ 1 1 3 A) (@filter_head_k _ 1 1 3) (@filter_head_v _ 1 1 3)
      (with_code X) i <> A ^+ i.+1 *m X.
Proof.
rewrite -mha_is_iha_linear; apply: (@col_neq _ _ ord0).
rewrite -(iha_same_weights _ _ (cmulti_head_filterE 1 1 3 a)) -mat_ccode ciha_linear.
by rewrite power_entry; case: i => [[|[|[|//]]] ?]; vm_compute.
Qed.

(** The count: the mixing costs 4 H^3, not 4 H^2 (nor 3 H^3, R left out). *)
Theorem not_another_count :
  let W := polynomial_filter 1 2 A in
  [/\ parameters W = 68%N, parameters W <> (2 * 2 * 3 * 2 + 3 * 2 ^ 2 + 4 * 2 ^ 2)%N
    & parameters W <> (2 * 2 * 3 * 2 + 3 * 2 ^ 2 + 3 * 2 ^ 3)%N].
Proof. by rewrite /parameters sum1_card card_ord. Qed.

(** The crossover: k d < N, d >= 1 and k >= 3 are all needed, and k d + 1 = N
    is enough. *)
Theorem not_crossover_at_equality : (mha_count 3 1 3 < iha_count 3 1 (ceil_sqrt 3))%N.
Proof. by vm_compute. Qed.
Theorem crossover_just_above : (iha_count 4 1 (ceil_sqrt 3) < mha_count 4 1 3)%N.
Proof. by vm_compute. Qed.
Theorem not_crossover_without_features : (mha_count 1 0 3 < iha_count 1 0 (ceil_sqrt 3))%N.
Proof. by vm_compute. Qed.
Theorem not_crossover_from_2 N d : (mha_count N d 2 < iha_count N d (ceil_sqrt 2))%N.
Proof. by rewrite [ceil_sqrt 2]/= iha_larger2 -addnA -[X in (X < _)%N]addn0 ltn_add2l addnS. Qed.
