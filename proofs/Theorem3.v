(* Theorem 3 (its full form is Theorem 6): polynomial filters.                *)
(*                                                                            *)
(* For a fixed N x N matrix A the layer maps [X, I] to the filter bank        *)
(* [X, AX, ..., A^(k-1) X], for every X, by linear attention: MHA with k      *)
(* heads, IHA with H heads as soon as k <= H^2, so with ceil(sqrt k) heads.   *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import ArithRing Lia.
From IHA Require Import Layer.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * Linear attention as a multilinear form in the base weights *)

Section Mixing.
Variables (R : comRingType) (H P N D dk dv : nat).
Implicit Types (W : weights R H P D dk dv) (X : 'M[R]_(N, D)).

(* How much output a holds of base query m, base key b and base value b'.     *)
Definition mixing W (a m b b' : 'I_H) : R :=
  \sum_i (\sum_j collapse W a i j * alpha_q W m i j)
       * (\sum_j alpha_k W b i j * alpha_v W b' i j).

Lemma collapse_queries W X a i :
  \sum_j collapse W a i j *: pseudo_q W X i j =
  \sum_m (\sum_j collapse W a i j * alpha_q W m i j) *: (X *m w_q W m).
Proof.
under eq_bigr do rewrite scaler_sumr.
rewrite exchange_big /=; apply: eq_bigr => m _; rewrite scaler_suml.
by apply: eq_bigr => j _; rewrite scalerA.
Qed.

Lemma keys_values W X i :
  \sum_j (pseudo_k W X i j)^T *m pseudo_v W X i j =
  \sum_b \sum_b' (\sum_j alpha_k W b i j * alpha_v W b' i j) *:
                 ((X *m w_k W b)^T *m (X *m w_v W b')).
Proof.
pose F b b' j := (alpha_k W b i j * alpha_v W b' i j) *:
                 ((X *m w_k W b)^T *m (X *m w_v W b')).
transitivity (\sum_j \sum_b \sum_b' F b b' j).
  apply: eq_bigr => j _; rewrite /pseudo_k /pseudo [_^T]raddf_sum /= mulmx_suml.
  apply: eq_bigr => b _; rewrite mulmx_sumr; apply: eq_bigr => b' _.
  by rewrite [_^T]linearZ /= -scalemxAl -scalemxAr scalerA.
rewrite exchange_big /=; apply: eq_bigr => b _.
rewrite exchange_big /=; apply: eq_bigr => b' _.
by rewrite scaler_suml.
Qed.

(** The linear layer is a form in its base weights with coefficients [mixing]:
    what alpha and the collapse do is in these numbers alone. *)
Theorem iha_mixing W X a :
  iha id W X a = \sum_m \sum_b \sum_b' mixing W a m b b' *:
    (X *m w_q W m *m (X *m w_k W b)^T *m (X *m w_v W b')).
Proof.
pose q i m := \sum_j collapse W a i j * alpha_q W m i j.
pose kv i b b' := \sum_j alpha_k W b i j * alpha_v W b' i j.
pose G m b b' := X *m w_q W m *m (X *m w_k W b)^T *m (X *m w_v W b').
transitivity (\sum_i \sum_m \sum_b \sum_b' (q i m * kv i b b') *: G m b b').
  rewrite iha_linear; apply: eq_bigr => i _.
  transitivity ((\sum_j collapse W a i j *: pseudo_q W X i j) *m
                (\sum_j (pseudo_k W X i j)^T *m pseudo_v W X i j)).
    rewrite mulmx_suml; apply: eq_bigr => j _; rewrite mulmx_sumr.
    by apply: eq_bigr => j' _; rewrite -!scalemxAl mulmxA.
  rewrite collapse_queries keys_values mulmx_suml; apply: eq_bigr => m _.
  rewrite mulmx_sumr; apply: eq_bigr => b _.
  rewrite mulmx_sumr; apply: eq_bigr => b' _.
  by rewrite -scalemxAl -scalemxAr scalerA mulmxA.
rewrite exchange_big /=; apply: eq_bigr => m _.
rewrite exchange_big /=; apply: eq_bigr => b _.
rewrite exchange_big /=; apply: eq_bigr => b' _.
by rewrite scaler_suml.
Qed.
End Mixing.

(* ------------------------------------------------------------------------ *)
(** * The filter bank *)

(* The first p columns of a matrix (0 where it has fewer).                    *)
Definition first_columns (R : ringType) m n p (M : 'M[R]_(m, n)) : 'M[R]_(m, p) :=
  \matrix_(r, c) oapp (M r) 0 (insub (val c)).
Arguments first_columns {R m n} p M.

Section Bank.
Variables (R : comRingType) (n d : nat).
Implicit Types (A : 'M[R]_n.+1) (X : 'M[R]_(n.+1, d)).

(* The input [X, I]: features, then the identity positional code.             *)
Definition with_code X : 'M[R]_(n.+1, d + n.+1) := row_mx X 1%:M.

(* The target [X, AX, ..., A^(k-1) X], of k * d columns.                      *)
Definition bank A X k : 'M[R]_(n.+1, \sum_(i < k) d) :=
  \mxrow_(i < k) (A ^+ i *m X).

(* Reading the code: the weight [0; B] gives B, the weight [B; 0] gives X B.   *)
Lemma read_code e X (B : 'M[R]_(n.+1, e)) : with_code X *m col_mx 0 B = B.
Proof. by rewrite mul_row_col mulmx0 add0r mul1mx. Qed.

Lemma read_features e X (B : 'M[R]_(d, e)) : with_code X *m col_mx B 0 = X *m B.
Proof. by rewrite mul_row_col mulmx0 addr0. Qed.

(* Division with remainder: if block b of head h is A^(h L + b) X, the first  *)
(* columns are the bank.                                                      *)
Lemma first_columns_bank A X H L k (O : 'M[R]_(n.+1, \sum_(h < H) \sum_(b < L) d)) :
  (forall h b, submxrow (submxrow O h) b = A ^+ (h * L + b) *m X) ->
  (k <= H * L)%N ->
  first_columns _ O = bank A X k.
Proof.
move=> blocks le_k; apply/matrixP => r c; rewrite [LHS]mxE [RHS]mxE.
set i := tagnat.sig1 c; set f := tagnat.sig2 c.
have L_gt0 : (0 < L)%N.
  by case: (L) le_k => // le_k; move: (leq_trans (ltn_ord i) le_k); rewrite muln0.
have h_lt : (i %/ L < H)%N by rewrite ltn_divLR // (leq_trans _ le_k).
have b_lt : (i %% L < L)%N by rewrite ltn_mod.
have /(congr1 (fun M : 'M_(_, _) => M r f)) := blocks (Ordinal h_lt) (Ordinal b_lt).
rewrite !mxE /= -divn_eq => <-.
set c' := tagnat.Rank _ _; suff -> : val c = val c' by rewrite valK.
have prefix p (m : 'I_p) e : (\sum_(j < p | (j < m)%N) e)%N = (m * e)%N.
  by rewrite -(big_ord_widen p (fun=> e)) 1?ltnW // sum_nat_const card_ord.
have -> : val c = (i * d + f)%N by apply: etrans (tagnat.rect c) _; rewrite prefix.
have -> : val c' = (i %/ L * (L * d) + (i %% L * d + f))%N.
  apply: etrans (tagnat.RankEsum _) _.
  by rewrite tagnat.RankEsum !prefix sum_nat_const card_ord.
by rewrite addnA mulnA -mulnDl -divn_eq.
Qed.
End Bank.

(* ------------------------------------------------------------------------ *)
(** * The base weights of the filter bank, and what mixing has to do *)

Section Filter.
Variables (R : comRingType) (n d H P L k : nat).
Implicit Types (A : 'M[R]_n.+1) (X : 'M[R]_(n.+1, d)).
Implicit Types (aq ak av C : 'I_H -> 'I_H -> 'I_P -> R).

(* L_m: the features into column block m of L (nowhere if m >= L).            *)
Definition place (m : nat) : 'M[R]_(d, \sum_(b < L) d) :=
  \mxrow_(b < L) ((m == b :> nat)%:R)%:M.

(* W_Q^m = [0; A^(m L)],  W_K^m = [0; (A^m)^T],  W_V^m = [L_m; 0]; the keys    *)
(* and values from m = L on are 0.                                            *)
Definition filter_key A (m : nat) : 'M[R]_(d + n.+1, n.+1) :=
  if (m < L)%N then col_mx 0 (A ^+ m)^T else 0.
Definition filter_weights A aq ak av C :
    weights R H P (d + n.+1) n.+1 (\sum_(b < L) d) :=
  Weights (fun m => col_mx 0 (A ^+ (m * L))) (filter_key A)
          (fun m => col_mx (place m) 0) aq ak av C.

Lemma read_key A X m :
  (with_code X *m filter_key A m)^T = if (m < L)%N then A ^+ m else 0.
Proof. by rewrite /filter_key; case: ifP; rewrite ?read_code ?trmxK // mulmx0 trmx0. Qed.

(* Output a is to hold base query a, and base key b with base value b.        *)
Definition pairs_powers D dk dv (W : weights R H P D dk dv) : Prop :=
  forall a m b b' : 'I_H, (b' < L)%N ->
    mixing W a m b b' = ((m == a) && (b == b'))%:R.

Lemma submxrow_form (M M' : 'M[R]_n.+1) X (m : nat) c (b : 'I_L) :
  submxrow (c *: (M *m M' *m (X *m place m))) b =
  (c * (m == b)%:R) *: (M *m M' *m X).
Proof.
rewrite -mul_scalar_mx -!mul_submxrow mxrowK mul_mx_scalar mul_scalar_mx.
by rewrite -scalemxAr scalerA.
Qed.

Lemma filter_block A aq ak av C X a (b : 'I_L) :
  let W := filter_weights A aq ak av C in
  (L <= H)%N -> pairs_powers W ->
  submxrow (iha id W (with_code X) a) b = A ^+ (a * L + b) *m X.
Proof.
move=> W le_LH mixW; pose b0 := widen_ord le_LH b.
pose G m i j := submxrow (mixing W a m i j *:
  (A ^+ (m * L) *m (if (i < L)%N then A ^+ i else 0) *m (X *m place j))) b.
have GE (m i j : 'I_H) : G m i j = if [&& m == a, i == b0 & j == b0]
                          then A ^+ (a * L + b) *m X else 0.
  rewrite /G submxrow_form; have [-> | ne] := eqVneq j b0; last first.
    by rewrite (_ : (j == b :> nat) = false) ?mulr0 ?scale0r ?andbF //; apply/negbTE.
  rewrite andbT eqxx mulr1 mixW ?(ltn_ord b) //.
  have [-> | _] := eqVneq m a; last by rewrite scale0r.
  have [-> | _] := eqVneq i b0; last by rewrite scale0r.
  by rewrite scale1r exprD [(_ < L)%N](ltn_ord b).
transitivity (\sum_m \sum_i \sum_j G m i j).
  rewrite iha_mixing submxrow_sum; apply: eq_bigr => m _.
  rewrite submxrow_sum; apply: eq_bigr => i _.
  rewrite submxrow_sum; apply: eq_bigr => j _.
  by rewrite read_code read_key read_features.
rewrite (bigD1 a) //= [X in _ + X]big1 ?addr0; last first.
  by move=> m /negbTE ne; rewrite !big1 // => i _; rewrite big1 // => j _; rewrite GE ne.
rewrite (bigD1 b0) //= [X in _ + X]big1 ?addr0; last first.
  by move=> i /negbTE ne; rewrite big1 // => j _; rewrite GE ne andbF.
rewrite (bigD1 b0) //= [X in _ + X]big1 ?addr0 ?GE ?eqxx // => j /negbTE ne.
by rewrite GE ne !andbF.
Qed.

(** The filter bank, in general: whatever the mixing, if it pairs base key b
    with base value b < L in full and sends base query a to output a, then the
    first k d columns of the output are [X, AX, ..., A^(k-1) X], k <= H L. *)
Theorem filter_bank A aq ak av C X :
  let W := filter_weights A aq ak av C in
  (L <= H)%N -> pairs_powers W -> (k <= H * L)%N ->
  first_columns _ (iha_output id W (with_code X)) = bank A X k.
Proof.
move=> W le_LH mixW le_k; apply: first_columns_bank le_k => h b.
by rewrite mxrowK filter_block.
Qed.
End Filter.
Arguments place {R} d L m.
Arguments filter_key {R n} d L A m.
Arguments filter_weights {R n} d {H P} L A aq ak av C.
Arguments pairs_powers {R H P} L {D dk dv} W.

(* ------------------------------------------------------------------------ *)
(** * Theorem 3: H heads, H pseudo-heads, k <= H^2 *)

Section Theorem3.
Variables (R : comRingType) (n d H : nat).
Implicit Types (A : 'M[R]_n.+1) (X : 'M[R]_(n.+1, d)).

(* alpha^Q[m,h,j] = [m = h][j = 0], alpha^K[m,h,j] = alpha^V[m,h,j] = [m = j],*)
(* R[h,h',j] = [h' = h][j = 0].                                               *)
Definition polynomial_filter A : weights R H H (d + n.+1) n.+1 (\sum_(b < H) d) :=
  filter_weights d H A
    (fun m h j => ((m == h) && (j == 0%N :> nat))%:R)
    (fun m _ j => (m == j)%:R) (fun m _ j => (m == j)%:R)
    (fun h h' j => ((h' == h) && (j == 0%N :> nat))%:R).

Lemma polynomial_filter_pairs A : pairs_powers H (polynomial_filter A).
Proof.
move=> a m b b' _; rewrite /mixing (bigD1 a) //= [X in _ + X]big1 ?addr0; last first.
  by move=> i /negbTE ne; rewrite big1 ?mul0r // => j _; rewrite ne mul0r.
have H_gt0 : (0 < H)%N by apply: leq_ltn_trans (ltn_ord a).
rewrite (bigD1 (Ordinal H_gt0)) //= !eqxx andbT mul1r.
rewrite [X in _ + X]big1 ?addr0 => [|j /negbTE ne]; last first.
  by rewrite (_ : (j == 0%N :> nat) = false) // andbF mul0r.
rewrite (bigD1 b) //= eqxx mul1r [X in _ + X]big1 ?addr0 => [|j]; last first.
  by rewrite eq_sym => /negbTE ->; rewrite mul0r.
by rewrite andbT (eq_sym b') -natrM mulnb.
Qed.

(** Block b of head h is the power h H + b of A applied to X. *)
Theorem theorem3_block A X (h b : 'I_H) :
  submxrow (iha id (polynomial_filter A) (with_code X) h) b
  = A ^+ (h * H + b) *m X.
Proof. by apply: filter_block => //; apply: polynomial_filter_pairs. Qed.

(** Theorem 3: over every commutative ring, for every A and X, and for every
    k <= H^2, the first k d columns of the output are [X, AX, ..., A^(k-1) X]. *)
Theorem theorem3 A X k :
  (k <= H * H)%N ->
  first_columns _ (iha_output id (polynomial_filter A) (with_code X)) = bank A X k.
Proof. by apply: filter_bank => //; apply: polynomial_filter_pairs. Qed.
End Theorem3.

(* ceil(sqrt k): the least H with k <= H^2.                                   *)
Definition ceil_sqrt k : nat := find (fun h => k <= h * h)%N (iota 0 k.+1).

Lemma ceil_sqrt_ge k : (k <= ceil_sqrt k * ceil_sqrt k)%N.
Proof.
have : has (fun h => k <= h * h)%N (iota 0 k.+1).
  by apply/hasP; exists k; [rewrite mem_iota ltnSn | case: (k) => // m; rewrite leq_pmulr].
move=> has_root; have := nth_find 0%N has_root.
by rewrite nth_iota // -[X in (_ < X)%N](size_iota 0) -has_find.
Qed.

(** No smaller H will do: H^2 < k for every H < ceil(sqrt k). *)
Lemma ceil_sqrt_min k h : (k <= h * h)%N = (ceil_sqrt k <= h)%N.
Proof.
apply/idP/idP => [le_k | le_h]; last first.
  by apply: leq_trans (ceil_sqrt_ge k) _; apply: leq_mul.
rewrite leqNgt; apply/negP => lt_h; have := before_find 0%N lt_h.
rewrite nth_iota ?le_k //; apply: leq_trans lt_h _.
by rewrite -[X in (_ <= X)%N](size_iota 0) find_size.
Qed.

(** Theorem 3 as the paper counts: ceil(sqrt k) heads give the bank of k. *)
Corollary theorem3_ceil_sqrt (R : comRingType) n d (A : 'M[R]_n.+1) (X : 'M[R]_(n.+1, d)) k :
  first_columns _ (iha_output id (polynomial_filter d (ceil_sqrt k) A) (with_code X))
  = bank A X k.
Proof. by apply: theorem3; apply: ceil_sqrt_ge. Qed.

(* ------------------------------------------------------------------------ *)
(** * The construction by MHA, with k heads *)

Section MultiHead.
Variables (R : comRingType) (n d k : nat).
Implicit Types (A : 'M[R]_n.+1) (X : 'M[R]_(n.+1, d)).

Definition filter_head_q A (i : 'I_k) : 'M[R]_(d + n.+1, n.+1) := col_mx 0 (A ^+ i).
Definition filter_head_k (i : 'I_k) : 'M[R]_(d + n.+1, n.+1) := col_mx 0 1%:M.
Definition filter_head_v (i : 'I_k) : 'M[R]_(d + n.+1, d) := col_mx 1%:M 0.

(** MHA with k heads has the bank as its output. *)
Theorem multi_head_filter A X :
  \mxrow_(i < k) mha id (filter_head_q A) filter_head_k filter_head_v (with_code X) i
  = bank A X k.
Proof.
apply: eq_mxrow => i; rewrite /mha /attention !read_code read_features trmx1.
by rewrite !mulmx1.
Qed.
End MultiHead.

(* ------------------------------------------------------------------------ *)
(** * Fewer pseudo-heads than heads: rank-one mixing *)

Section RankOne.
Variables (R : comRingType) (n d H P L : nat) (c g : 'I_H -> 'I_H -> R).
Implicit Types (A : 'M[R]_n.+1) (X : 'M[R]_(n.+1, d)).

Definition support (v : 'I_H -> R) := [pred m | v m != 0].

(* m is the j-th element of the support of v.                                 *)
Definition nth_support (v : 'I_H -> R) (m : 'I_H) (j : 'I_P) : bool :=
  (v m != 0) && (index m (enum (support v)) == j).

Lemma nth_support_inj v m m' j : nth_support v m j -> nth_support v m' j -> m = m'.
Proof.
case/andP=> vm /eqP jm /andP[vm' /eqP jm'].
have m_in : m \in enum (support v) by rewrite mem_enum.
have m'_in : m' \in enum (support v) by rewrite mem_enum.
by rewrite -(nth_index m m_in) jm -jm' nth_index.
Qed.

Lemma nth_support_sum v m : (#|support v| <= P)%N ->
  v m * (\sum_(j < P) (nth_support v m j)%:R) = v m.
Proof.
move=> small; have [-> | vm] := eqVneq (v m) 0; first by rewrite mul0r.
have m_in : m \in enum (support v) by rewrite mem_enum.
have lt_P : (index m (enum (support v)) < P)%N.
  by apply: leq_trans small; rewrite cardE index_mem.
rewrite (bigD1 (Ordinal lt_P)) //= /nth_support vm eqxx big1 ?addr0 ?mulr1 // => j.
by rewrite eq_sym -val_eqE /= => /negbTE ->.
Qed.

(* A sum over j of selected coefficients is the coefficient.                  *)
Lemma support_diag v m m' : (#|support v| <= P)%N ->
  \sum_(j < P) v m * (nth_support v m j)%:R * (nth_support v m' j)%:R
  = v m * (m' == m)%:R.
Proof.
move=> small; have [-> | ne] := eqVneq m' m; last first.
  rewrite mulr0 big1 // => j _; rewrite -mulrA -natrM mulnb.
  have [/andP[mj m'j] | _] := boolP (_ && _); last by rewrite mulr0.
  by rewrite (nth_support_inj mj m'j) eqxx in ne.
rewrite mulr1 -[RHS](nth_support_sum _ small) mulr_sumr; apply: eq_bigr => j _.
by rewrite -mulrA -natrM mulnb andbb.
Qed.

(* Head i's j-th pseudo-query is the j-th base query in the support of c_i,   *)
(* collapsed with the coefficients of c_i; its j-th pseudo-key is the j-th    *)
(* base key in the support of g_i, its pseudo-value the same base value times *)
(* the coefficient of g_i.                                                    *)
Definition rank_one_filter A : weights R H P (d + n.+1) n.+1 (\sum_(b < L) d) :=
  filter_weights d L A
    (fun m i j => (nth_support (c i) m j)%:R)
    (fun m i j => (nth_support (g i) m j)%:R)
    (fun m i j => g i m * (nth_support (g i) m j)%:R)
    (fun a i j => c i a * (nth_support (c i) a j)%:R).

Hypothesis c_small : forall i, (#|support (c i)| <= P)%N.
Hypothesis g_small : forall i, (#|support (g i)| <= P)%N.
(* The rank-one matrices c_i g_i^T sum to ones in the first L columns.        *)
Hypothesis ones : forall a b : 'I_H, (b < L)%N -> \sum_i c i a * g i b = 1.

Lemma rank_one_pairs A : pairs_powers L (rank_one_filter A).
Proof.
move=> a m b b' b'_lt; rewrite /mixing /=.
transitivity (\sum_i (c i a * (m == a)%:R) * (g i b' * (b == b')%:R)).
  apply: eq_bigr => i _; rewrite support_diag //; congr (_ * _).
  by rewrite -support_diag //; apply: eq_bigr => j _; rewrite mulrC.
rewrite -mulnb natrM -[RHS]mul1r -(ones a b'_lt) mulr_suml.
by apply: eq_bigr => i _; rewrite mulrACA.
Qed.

(** Rank-one mechanism: if H rank-one matrices c_i g_i^T, with at most P
    non-zero entries in each c_i and in each g_i, sum to all ones in L <= H
    columns, then H heads with P pseudo-heads give the bank of k <= H L. *)
Theorem rank_one_bank A X k : (L <= H)%N -> (k <= H * L)%N ->
  first_columns _ (iha_output id (rank_one_filter A) (with_code X)) = bank A X k.
Proof. by move=> le_LH; apply: filter_bank => //; apply: rank_one_pairs. Qed.
End RankOne.

(* ------------------------------------------------------------------------ *)
(** * Tiling: 0/1 rectangles of P rows and P columns *)

(* ceil(m / p)                                                                *)
Definition ceil_div m p : nat := ((m + p.-1) %/ p)%N.

Lemma ceil_div_le m p x : (0 < p)%N -> (ceil_div m p <= x)%N = (m <= x * p)%N.
Proof.
move=> p_gt0; rewrite /ceil_div -ltnS ltn_divLR // mulSn addnC.
by rewrite -[X in (_ < X + _)%N]prednK // addSn ltnS leq_add2l.
Qed.

Lemma ltn_ceil_div m p x : (0 < p)%N -> (x < m)%N -> (x %/ p < ceil_div m p)%N.
Proof.
move=> p_gt0 lt_m; rewrite ltn_divLR //; apply: leq_trans lt_m _.
by rewrite -ceil_div_le.
Qed.

Section Tiled.
Variables (R : comRingType) (n d H P L : nat).
Implicit Types (A : 'M[R]_n.+1) (X : 'M[R]_(n.+1, d)).
Let p := ceil_div H P.
Let q := ceil_div L P.

(* m is the j-th index of the r-th run of P.                                  *)
Definition in_run (r : nat) (m : 'I_H) (j : 'I_P) : bool := m == (r * P + j)%N :> nat.

(* Head i covers the rows of run i / q and the columns of run i mod q; the    *)
(* heads from p q on cover nothing.                                           *)
Definition tiled_filter A : weights R H P (d + n.+1) n.+1 (\sum_(b < L) d) :=
  filter_weights d L A
    (fun m i j => (in_run (i %/ q) m j)%:R)
    (fun m i j => [&& i < p * q, m < L & in_run (i %% q) m j]%N%:R)
    (fun m i j => [&& i < p * q, m < L & in_run (i %% q) m j]%N%:R)
    (fun a i j => (in_run (i %/ q) a j)%:R).

Hypothesis P_gt0 : (0 < P)%N.

Lemma in_run_sum r (a m : 'I_H) :
  \sum_(j < P) (in_run r a j)%:R * (in_run r m j)%:R
  = ((m == a) && (a %/ P == r)%N)%:R :> R.
Proof.
have runP (x : 'I_H) j : in_run r x j -> (x %/ P == r)%N && (x %% P == j)%N.
  by move=> /eqP ->; rewrite divnMDl // modnMDl divn_small ?modn_small // addn0 !eqxx.
have [/andP[/eqP -> /eqP ar] | ne] := boolP (_ && _); last first.
  rewrite big1 // => j _; rewrite -natrM mulnb; case: andP => // -[aj mj].
  have /andP[/eqP ar /eqP ja] := runP _ _ aj; have /andP[/eqP mr /eqP jm] := runP _ _ mj.
  case/negP: ne; rewrite ar eqxx andbT -val_eqE /=.
  by rewrite (divn_eq m P) (divn_eq a P) ar mr ja jm.
have aj : (a %% P < P)%N by rewrite ltn_mod.
rewrite (bigD1 (Ordinal aj)) //= big1 ?addr0 => [|j ne].
  by rewrite /in_run /= -ar -divn_eq eqxx mulr1.
rewrite -natrM mulnb andbb; case in_j: (in_run r a j) => //.
have /andP[_ /eqP ja] := runP _ _ in_j; by case/eqP: ne; apply: val_inj.
Qed.

Hypothesis tiles : (p * q <= H)%N.

(* Exactly one head covers row a, column b.                                   *)
Lemma one_tile (a b : 'I_H) : (b < L)%N ->
  \sum_(i < H) ((a %/ P == i %/ q) && (b %/ P == i %% q))%N%:R = 1 :> R.
Proof.
move=> b_lt; have bq : (b %/ P < q)%N by apply: ltn_ceil_div.
have ap : (a %/ P < p)%N by apply: ltn_ceil_div.
move: (a %/ P)%N (b %/ P)%N ap bq => r c rp cq.
have i0_lt : (r * q + c < H)%N.
  apply: leq_trans tiles; apply: leq_trans (_ : r.+1 * q <= _)%N.
    by rewrite mulSn addnC ltn_add2r.
  by rewrite leq_mul2r rp orbT.
have q_gt0 : (0 < q)%N by apply: leq_trans cq.
rewrite (bigD1 (Ordinal i0_lt)) //= divnMDl // modnMDl divn_small ?modn_small //.
rewrite addn0 !eqxx big1 ?addr0 // => i ne.
case: andP => // -[/eqP ri /eqP ci]; case/eqP: ne; apply: val_inj.
by rewrite /= ri ci -divn_eq.
Qed.

Lemma tiled_pairs A : pairs_powers L (tiled_filter A).
Proof.
move=> a m b b' b'_lt; rewrite /mixing /=.
transitivity (\sum_(i < H) (((m == a) && (b == b')) &&
                ((a %/ P == i %/ q) && (b' %/ P == i %% q)))%N%:R : R).
  apply: eq_bigr => i _; rewrite in_run_sum.
  have [i_lt | i_ge] := ltnP i (p * q); last first.
    rewrite [X in _ * X]big1 => [|j _]; last by rewrite mul0r.
    have q_gt0 : (0 < q)%N by apply: leq_trans (ltn_ceil_div P_gt0 b'_lt).
    suff -> : (a %/ P == i %/ q)%N = false by rewrite mulr0 /= andbF.
    by rewrite ltn_eqF // (leq_trans (ltn_ceil_div P_gt0 (ltn_ord a))) // leq_divRL.
  have [b_lt | b_ge] := boolP (b < L)%N; last first.
    rewrite big1 => [|j _]; last by rewrite mul0r.
    rewrite mulr0 (_ : (b == b') = false) ?andbF //.
    by apply: contraNF b_ge => /eqP ->.
  rewrite b'_lt in_run_sum -natrM mulnb; congr (_%:R); rewrite (eq_sym b').
  have [-> | _] := eqVneq b b'; last by rewrite !andbF.
  by rewrite andbT andTb andbA.
case: (_ && _); first exact: one_tile.
by rewrite big1.
Qed.

(** Tiled mixing: if the ceil(H/P) runs of rows times the ceil(L/P) runs of
    columns are at most H, then H heads with P pseudo-heads give the bank of
    k <= H L. *)
Theorem tiled_bank A X k : (L <= H)%N -> (k <= H * L)%N ->
  first_columns _ (iha_output id (tiled_filter A) (with_code X)) = bank A X k.
Proof. by move=> le_LH; apply: filter_bank => //; apply: tiled_pairs. Qed.
End Tiled.

(** k = H^2 with P = ceil(H/s) pseudo-heads, for any s with s^2 <= H: about
    sqrt H = k^(1/4) of them are enough. *)
Corollary tiled_bank_square (R : comRingType) n d H s (A : 'M[R]_n.+1)
    (X : 'M[R]_(n.+1, d)) k :
  (0 < s)%N -> (s * s <= H)%N -> (k <= H * H)%N ->
  let P := ceil_div H s in
  first_columns _ (iha_output id (tiled_filter d H P H A) (with_code X)) = bank A X k.
Proof.
move=> s_gt0 le_ssH le_k P.
have H_gt0 : (0 < H)%N by apply: leq_trans le_ssH; rewrite muln_gt0 s_gt0.
have P_gt0 : (0 < P)%N by rewrite ltnNge ceil_div_le // -ltnNge.
have le_s : (ceil_div H P <= s)%N by rewrite ceil_div_le // mulnC -ceil_div_le.
by apply: tiled_bank => //; apply: leq_trans le_ssH; apply: leq_mul.
Qed.

(** When P divides H and P^2 <= H, the count k = H P^2 is met. *)
Corollary tiled_bank_HPP (R : comRingType) n d H P (A : 'M[R]_n.+1)
    (X : 'M[R]_(n.+1, d)) k :
  (0 < P)%N -> (P %| H)%N -> (P * P <= H)%N -> (k <= H * (P * P))%N ->
  first_columns _ (iha_output id (tiled_filter d H P (P * P) A) (with_code X)) = bank A X k.
Proof.
move=> P_gt0 P_dvd le_PPH le_k; apply: tiled_bank => //.
rewrite -[X in (_ <= X)%N](divnK P_dvd).
by apply: leq_mul; rewrite ceil_div_le // divnK.
Qed.

(* ------------------------------------------------------------------------ *)
(** * Signed mixing: H = L = 3, P = 2, where no 0/1 tiling exists *)

Section Signed.
Variables (R : comRingType) (n d : nat) (half : R).
Hypothesis half2 : half + half = 1.

Definition signed_c (i a : 'I_3) : R :=
  nth 0 (nth [::] [:: [:: 0; 1; half]; [:: 1; 0; half]; [:: -1; 1; 0]] i) a.
Definition signed_g (i b : 'I_3) : R :=
  nth 0 (nth [::] [:: [:: 0; 2%:R; 1]; [:: 2%:R; 0; 1]; [:: 1; -1; 0]] i) b.

(* A vector with a zero entry has at most two other entries.                  *)
Lemma support_lt3 (v : 'I_3 -> R) i : v i = 0 -> (#|support v| <= 2)%N.
Proof.
move=> vi; apply: (@leq_trans #|predC1 i|); last by rewrite cardC1 card_ord.
apply/subset_leq_card/subsetP => m; rewrite !inE.
by apply: contraNneq => ->; rewrite vi.
Qed.

Lemma signed_ones (a b : 'I_3) : (b < 3)%N -> \sum_i signed_c i a * signed_g i b = 1.
Proof.
move=> _; rewrite !big_ord_recl big_ord0 addr0 /signed_c /signed_g /=.
case: a => -[|[|[|//]]] /= _; case: b => -[|[|[|//]]] /= _;
  by rewrite ?(mul0r, mulr0, mul1r, mulr1, add0r, addr0, mulrN1, opprK) //
             ?mulr2n ?mulrDr ?mulr1 ?half2 // ?addrK ?mulN1r ?addrK.
Qed.

(** Over every commutative ring in which 2 is invertible, 3 heads with 2
    pseudo-heads give the bank of k <= 9. *)
Theorem signed_bank (A : 'M[R]_n.+1) (X : 'M[R]_(n.+1, d)) k : (k <= 9)%N ->
  first_columns _ (iha_output id (rank_one_filter d 2 3 signed_c signed_g A) (with_code X))
  = bank A X k.
Proof.
have zero_c i : signed_c i i = 0 by case: i => -[|[|[|//]]].
have zero_g i : signed_g i i = 0 by case: i => -[|[|[|//]]].
move=> le_k; apply: (@rank_one_bank R n d 3 2 3) => //.
- by move=> i; apply: support_lt3 (zero_c i).
- by move=> i; apply: support_lt3 (zero_g i).
exact: signed_ones.
Qed.
End Signed.

(* ------------------------------------------------------------------------ *)
(** * Parameter counts, and when IHA is smaller *)

Section Counts.
Variables (R : comRingType) (n d : nat).
Let N := n.+1.

(** MHA: 2 N (N + d) k + d (N + d) k. *)
Theorem multi_head_filter_parameters k (A : 'M[R]_n.+1) :
  mha_parameters (@filter_head_q R n d k A) (@filter_head_k R n d k) (@filter_head_v R n d k)
  = (2 * N * (N + d) * k + d * (N + d) * k)%N.
Proof. by rewrite /mha_parameters card_ord -/N; move: N => m; rewrite -!multE -!plusE; ring. Qed.

(** IHA with P = H: 2 N (N + d) H + d (N + d) H^2 + 4 H^3. *)
Theorem polynomial_filter_parameters H (A : 'M[R]_n.+1) :
  parameters (polynomial_filter d H A)
  = (2 * N * (N + d) * H + d * (N + d) * H ^ 2 + 4 * H ^ 3)%N.
Proof.
rewrite /parameters sum_nat_const card_ord -/N !expnS expn0; move: N => m.
by rewrite -!multE -!plusE; ring.
Qed.

(** Tiled IHA: the mixing costs 4 H^2 P instead of 4 H^3. *)
Theorem tiled_filter_parameters H P L (A : 'M[R]_n.+1) :
  parameters (tiled_filter d H P L A)
  = (2 * N * (N + d) * H + d * (N + d) * (H * L) + 4 * (H ^ 2 * P))%N.
Proof.
rewrite /parameters sum_nat_const card_ord -/N !expnS expn0; move: N => m.
by rewrite -!multE -!plusE; ring.
Qed.
End Counts.

(* The two counts as functions of N, d, k.                                    *)
Definition mha_count N d k : nat := (2 * N * (N + d) * k + d * (N + d) * k)%N.
Definition iha_count N d H : nat :=
  (2 * N * (N + d) * H + d * (N + d) * H ^ 2 + 4 * H ^ 3)%N.

(* The difference of the counts, over any commutative ring.                   *)
Lemma count_gap (R : comRingType) (N d k H c2 c4 : R) :
  (c2 * N * (N + d) * k + d * (N + d) * k)
    - (c2 * N * (N + d) * H + d * (N + d) * (H * H) + c4 * (H * H * H))
  = (N + d) * (c2 * (k - H) * N - (H * H - k) * d) - c4 * (H * H * H).
Proof.
move: (N + d) (H * H) => s HH; rewrite opprD addrA; congr (_ - _).
rewrite opprD addrACA -!mulrBr -(opprB HH k) mulrN [RHS]mulrBr; congr (_ - _).
  rewrite mulrAC [in LHS](mulrC (c2 * N)) -!mulrA [LHS]mulrCA [RHS]mulrCA.
  by congr (_ * _); rewrite mulrA mulrC.
by rewrite mulrAC mulrC [d * _]mulrC.
Qed.

(** With a = k - H and b = H^2 - k, as integers: IHA with H heads is smaller
    than MHA with k heads iff (N + d) (2 a N - b d) > 4 H^3. *)
Theorem iha_smaller N d k H :
  (iha_count N d H < mha_count N d k)%N =
  (let a := k%:Z - H%:Z in let b := H%:Z ^+ 2 - k%:Z in
   4%:Z * H%:Z ^+ 3 < (N%:Z + d%:Z) * (2%:Z * a * N%:Z - b * d%:Z)).
Proof.
rewrite /= -[LHS]ltz_nat -[LHS]subr_gt0 -[RHS]subr_gt0 !exprS expr0 mulr1 (mulrA H%:Z).
rewrite -count_gap /mha_count /iha_count !expnS expn0 muln1.
by rewrite !(PoszD, PoszM) !mulrA.
Qed.

(** k = 1 : IHA is larger by 4; k = 2 : by 2 d (N + d) + 32; for every N, d. *)
Theorem iha_larger1 N d : iha_count N d 1 = (mha_count N d 1 + 4)%N.
Proof. by rewrite /iha_count /mha_count !exp1n !muln1. Qed.

Theorem iha_larger2 N d : iha_count N d 2 = (mha_count N d 2 + 2 * d * (N + d) + 32)%N.
Proof. by rewrite /iha_count /mha_count !expnS expn0 -!multE -!plusE; ring. Qed.

(* For k d < N it is enough that 4 H^3 < (k + 2) M with b + M = 2 a (k + 1).    *)
Lemma crossover_step N d k H a b M :
  (0 < d -> k * d < N -> k = H + a -> H * H = k + b -> b <= 2 * a * k ->
   b + M = 2 * a * (k + 1) -> 4 * H ^ 3 < (k + 2) * M ->
   iha_count N d H < mha_count N d k)%N.
Proof.
move=> d_gt0 kd_lt kE HH b_le ME core.
have T_ge : (k + 2 <= N + d)%N.
  rewrite addn2 -addn1 leq_add // (leq_trans _ kd_lt) // ltnS.
  by rewrite leq_pmulr.
have N_ge : (d * b + M <= 2 * a * N)%N.
  apply: (@leq_trans (2 * a * (k * d).+1)); last by rewrite leq_mul2l kd_lt orbT.
  case: d d_gt0 {kd_lt T_ge} => // d _.
  rewrite mulSn addnAC ME.
  have -> : (2 * a * (k * d.+1).+1 = 2 * a * (k + 1) + d * (2 * a * k))%N.
    by rewrite -!multE -!plusE; ring.
  by rewrite leq_add2l leq_mul.
apply: (@leq_trans (2 * N * (N + d) * H + (N + d) * (d * b + M) + d * (N + d) * k)%N).
  apply: leq_trans (_ : _ < 2 * N * (N + d) * H + d * (N + d) * (k + b) + (N + d) * M)%N _.
    rewrite /iha_count -HH mulnn ltn_add2l (leq_trans core) //.
    by rewrite leq_mul2r T_ge orbT.
  by rewrite eq_leq // -!multE -!plusE; ring.
rewrite /mha_count leq_add2r.
have -> : (2 * N * (N + d) * k = 2 * N * (N + d) * H + (N + d) * (2 * a * N))%N.
  by rewrite kE -!multE -!plusE; ring.
by rewrite leq_add2l leq_mul2l N_ge orbT.
Qed.

(* The numbers for H = h + 2 and k = (h + 1)^2 + 1 + s.                         *)
Lemma crossover_core h s H k a :
  (0 < h + s -> H = h.+2 -> k = h.+1 * h.+1 + 1 + s -> a = h * h + h + s ->
   4 * (H * H * H) + (k + 2) * (2 * h + 2) < (k + 2) * (2 * a * (k + 1) + s))%N.
Proof.
move=> + -> -> -> => /ssrnat.leP hs; apply/ssrnat.leP; move: hs.
by rewrite -!multE -!plusE; case: h s => [|h] [|s] hs; lia.
Qed.

(** Theorem 3, the crossover: for d >= 1, k >= 1 and k d < N, IHA with
    H = ceil(sqrt k) heads is smaller than MHA with k heads iff k >= 3. *)
Theorem crossover N d k :
  (0 < d -> 0 < k -> k * d < N ->
   (iha_count N d (ceil_sqrt k) < mha_count N d k) = (3 <= k))%N.
Proof.
move=> d_gt0; case: k => [|[|[|k]]] // _ kd_lt.
- by rewrite [ceil_sqrt 1]/= iha_larger1 ltnNge leq_addr.
- by rewrite [ceil_sqrt 2]/= iha_larger2 -addnA ltnNge leq_addr.
move: (ceil_sqrt_ge k.+3) (ceil_sqrt_min k.+3 (ceil_sqrt k.+3).-1).
move: (ceil_sqrt_min k.+3 1); case: (ceil_sqrt k.+3) => [|[|h]] //= _ hi.
rewrite ltnn leqNgt => /negbFE lo; move: k.+3 (isT : 2 < k.+3)%N kd_lt lo hi.
move=> {}k k_gt2 kd_lt lo hi; set H := h.+2 in hi *.
pose s := (k - (h.+1 * h.+1 + 1))%N; pose b := (H * H - k)%N.
have kE : k = (h.+1 * h.+1 + 1 + s)%N by rewrite subnKC // addn1.
have HH : (H * H = k + b)%N by rewrite subnKC.
have hs : (0 < h + s)%N by move: k_gt2; rewrite kE; case: (h) (s) => [|?] [].
pose a := (h * h + h + s)%N; pose M := (2 * a * (k + 1) - b)%N.
have sb : (s + b = 2 * h + 2)%N.
  by move: HH; rewrite {1}kE /H -!multE -!plusE; lia.
have kHa : k = (H + a)%N by rewrite kE /H /a -!multE -!plusE; ring.
have b_le : (b <= 2 * a * k)%N.
  apply: (@leq_trans (2 * k)%N); last by rewrite leq_mul2r leq_pmulr ?orbT // /a -addnA ltn_addl.
  by rewrite kE; apply/ssrnat.leP; move: sb; rewrite -!multE -!plusE; lia.
have ME : (b + M = 2 * a * (k + 1))%N.
  by rewrite subnKC // (leq_trans b_le) // leq_mul2l leq_addr orbT.
rewrite k_gt2; apply: (crossover_step d_gt0 kd_lt kHa HH b_le ME).
have := crossover_core hs (erefl H) kE (erefl a).
rewrite -ME -sb (_ : b + M + s = M + (s + b))%N; last by rewrite -!plusE; lia.
by rewrite [X in (_ < X)%N]mulnDr ltn_add2r !expnS expn0 muln1 !mulnA.
Qed.

(** The same said of the layers themselves. *)
Corollary smaller_layer (R : comRingType) n d k (A : 'M[R]_n.+1) :
  (0 < d -> 0 < k -> k * d < n.+1 ->
   (parameters (polynomial_filter d (ceil_sqrt k) A) <
    mha_parameters (@filter_head_q R n d k A) (@filter_head_k R n d k)
                   (@filter_head_v R n d k)) = (3 <= k))%N.
Proof.
by rewrite polynomial_filter_parameters multi_head_filter_parameters; apply: crossover.
Qed.
