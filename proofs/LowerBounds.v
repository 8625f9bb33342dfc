(* Lower bounds: how many heads a polynomial filter bank needs.               *)
(*                                                                            *)
(* The target is the bank [X, A X, ..., A^(k-1) X] for every X, the layer is  *)
(* linear, its input [X, I], an output projection is allowed.                 *)
(* - Position-only queries and keys, over any field: MHA needs                *)
(*   s = rank (I, A, ..., A^(k-1)) heads, IHA needs H^2 >= s and H P^2 >= s.  *)
(* - Any weights, over a field with at least three elements: the same, with   *)
(*   the same s; also the exact least numbers of heads, MHA and IHA, with and *)
(*   without a projection.                                                    *)
(* Nothing is claimed here for a causal mask, nor for approximate equality.   *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem3 Reductions OneClass Krylov.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * MHA with position-only queries and keys *)

(* The weight reads the positions only: its rows for the features are zero.   *)
Definition position_only (R : comRingType) d N e (W : 'M[R]_(d + N, e)) := usubmx W = 0.

Section PositionOnly.
Variables (F : fieldType) (n d dk dv k : nat) (T : finType) (A : 'M[F]_n.+1).
Variables (WQ WK : T -> 'M[F]_(d.+1 + n.+1, dk)) (WV : T -> 'M[F]_(d.+1 + n.+1, dv)).
Variable WO : T -> 'M[F]_(dv, \sum_(i < k) d.+1).
Hypothesis WQ_pos : forall t, position_only (WQ t).
Hypothesis WK_pos : forall t, position_only (WK t).
Hypothesis target : forall X, projected_mha WQ WK WV WO (with_code X) = bank A X k.

(* The scores of head t do not depend on X.                                   *)
Let E t : 'M[F]_n.+1 := dsubmx (WQ t) *m (dsubmx (WK t))^T.
Let V1 t (i : 'I_k) : 'M[F]_d.+1 := usubmx (WV t) *m submxrow (WO t) i.
Let V0 t (i : 'I_k) : 'M[F]_(n.+1, d.+1) := dsubmx (WV t) *m submxrow (WO t) i.

Lemma position_only_block X i : \sum_t E t *m (X *m V1 t i + V0 t i) = A ^+ i *m X.
Proof.
rewrite -[RHS](mxrowK (fun i : 'I_k => A ^+ i *m X)) -[\mxrow_i _]target submxrow_sum.
apply: eq_bigr => t _; rewrite -mul_submxrow /mha /attention -[RHS]mulmxA.
have read W : position_only W -> with_code X *m W = dsubmx W.
    by move=> W0; rewrite -{1}(vsubmxK W) W0 read_code.
rewrite (read dk (WQ t)) // (read dk (WK t)) //; congr mulmx.
by rewrite -{1}(vsubmxK (WV t)) mul_row_col mul1mx mulmxDl !mulmxA.
Qed.

(* Reading off the operator: A^i is a combination of the E t.                 *)
Lemma position_only_power (i : 'I_k) : A ^+ i = \sum_t V1 t i 0 0 *: E t.
Proof.
have const : \sum_t E t *m V0 t i = 0.
  rewrite -[RHS](mulmx0 _ (A ^+ i)) -position_only_block.
  by apply: eq_bigr => t _; rewrite mul0mx add0r.
apply: mx_ext => x; have := position_only_block (x *m delta_mx 0 0) i.
under eq_bigr do rewrite mulmxDr; rewrite big_split /= const addr0 => /(congr1 (col 0)).
rewrite col_mulmx; have -> : col 0 (x *m (delta_mx 0 0 : 'rV_d.+1)) = x.
  by apply/matrixP => r c; rewrite !mxE big_ord1 !mxE [c]ord1 mulr1.
move=> <-; rewrite raddf_sum mulmx_suml; apply: eq_bigr => t _ /=.
rewrite -scalemxAl scalemxAr col_mulmx; congr (_ *m _).
rewrite -mulmxA colE -mulmxA mulmx11; congr (_ *: x).
by rewrite -colE -rowE !mxE.
Qed.

(** Theorem (any field).  MHA whose queries and keys read positions only, with an
    output projection, needs rank (I, A, ..., A^(k-1)) heads for the bank. *)
Theorem position_only_bound : (\rank (powers_mx A k) <= #|T|)%N.
Proof.
pose C : 'M[F]_(k, #|T|) := \matrix_(i, q) V1 (enum_val q) i 0 0.
pose Em : 'M[F]_(#|T|, n.+1 * n.+1) := \matrix_q mxvec (E (enum_val q)).
suff -> : powers_mx A k = C *m Em.
  exact: leq_trans (mxrankM_maxr _ _) (rank_leq_row _).
apply/row_matrixP => i; rewrite row_mul rowK position_only_power raddf_sum mulmx_sum_row.
rewrite (reindex_onto (@enum_val T T) (@enum_rank T)) /=; last by move=> t _; apply: enum_rankK.
rewrite (eq_bigl predT); last by move=> q; rewrite enum_valK eqxx.
by apply: eq_bigr => q _; rewrite linearZ /= rowK !mxE.
Qed.
End PositionOnly.

(* ------------------------------------------------------------------------ *)
(** * IHA *)

Section IHA.
Variables (F : fieldType) (n d dk dv H P k : nat) (A : 'M[F]_n.+1).
Variable W : weights F H P (d.+1 + n.+1) dk dv.
Variable O : 'M[F]_(\sum_(h < H) dv, \sum_(i < k) d.+1).
Hypothesis target : forall X, iha_output id W (with_code X) *m O = bank A X k.

(* The layer and its projection, as MHA with H^2 and with H P^2 heads.        *)
Lemma output_sum N (X : 'M[F]_(N, d.+1 + n.+1)) :
  iha_output id W X *m O = \sum_h iha id W X h *m submxcol O h.
Proof. by rewrite -{1}(submxcolK O) mul_mxrow_mxcol. Qed.

Let O_hh t := \sum_h o_hh W h t *m submxcol O h.
Let O_hpp t := \sum_h o_hpp W h t *m submxcol O h.

Lemma target_hh X : projected_mha (q_hh W) (k_hh W) (v_hh F (d.+1 + n.+1)) O_hh (with_code X)
  = bank A X k.
Proof.
rewrite -target output_sum -sum_projected_mha; apply: eq_bigr => h _.
by rewrite iha_is_mha_hh.
Qed.

Lemma target_hpp X : projected_mha (q_hpp W) (k_hpp W) (v_hpp W) O_hpp (with_code X)
  = bank A X k.
Proof.
rewrite -target output_sum -sum_projected_mha; apply: eq_bigr => h _.
by rewrite iha_is_mha_hpp.
Qed.

Lemma card_hh : (#|heads_hh H| = H * H)%N.
Proof. by rewrite card_prod !card_ord. Qed.
Lemma card_hpp : (#|heads_hpp H P| = H * P * P)%N.
Proof. by rewrite !card_prod !card_ord. Qed.

Lemma position_only_mix e (a : 'I_H -> 'I_H -> 'I_P -> F)
    (w : 'I_H -> 'M[F]_(d.+1 + n.+1, e)) h j :
  (forall m, position_only (w m)) -> position_only (mix a w h j).
Proof.
move=> w_pos; rewrite /position_only /mix raddf_sum big1 //= => m _.
by rewrite linearZ /= w_pos scaler0.
Qed.

(** Theorem (any field).  IHA whose base queries and keys read positions only,
    with any mixing, values, collapse and output projection, has H^2 >= s and
    H P^2 >= s, where s = rank (I, A, ..., A^(k-1)). *)
Theorem iha_position_only_bounds :
  (forall m, position_only (w_q W m)) -> (forall m, position_only (w_k W m)) ->
  (\rank (powers_mx A k) <= H * H)%N /\ (\rank (powers_mx A k) <= H * P * P)%N.
Proof.
move=> q_pos k_pos; rewrite -card_hh -card_hpp; split.
  by apply: position_only_bound target_hh => t; [apply: q_pos | apply: k_pos].
by apply: position_only_bound target_hpp => t; apply: position_only_mix.
Qed.

(** Theorem (at least three elements).  Linear IHA with any weights, and an output
    projection, has H^2 >= s and H P^2 >= s, where s = rank (I, A, ..., A^(k-1)). *)
Theorem iha_bounds : three_elements F ->
  (\rank (powers_mx A k) <= H * H)%N /\ (\rank (powers_mx A k) <= H * P * P)%N.
Proof.
move=> F_three; rewrite -card_hh -card_hpp; split.
  exact: projected_heads_bound F_three target_hh.
exact: projected_heads_bound F_three target_hpp.
Qed.
End IHA.

(* Taking the first columns of the output is a projection.                    *)
Lemma first_columns_projection (F : fieldType) m q p (M : 'M[F]_(m, q)) :
  first_columns p M = M *m first_columns p 1%:M.
Proof.
apply/matrixP => r c; rewrite !mxE; case E: (insub (val c)) => [j|] /=.
  rewrite (bigD1 j) //= !mxE E /= mxE eqxx mulr1 big1 ?addr0 // => i /negbTE ij.
  by rewrite mxE E /= mxE ij mulr0.
by rewrite big1 // => i _; rewrite mxE E /= mulr0.
Qed.

(* ------------------------------------------------------------------------ *)
(** * The least numbers of heads *)

(* The rank s of I, A, ..., A^(k-1) is k or the degree of the minimal         *)
(* polynomial, and every A^i, i < k, is a combination of the first s powers.  *)
Section Powers.
Variables (F : fieldType) (n : nat) (A : 'M[F]_n.+1).
Let deg := degree_mxminpoly A.

Lemma powers_prefix k l : (k <= l)%N -> powers_mx A k = pid_mx k *m powers_mx A l.
Proof.
move=> le_kl; apply/row_matrixP => i; rewrite row_mul rowK.
have -> : row i (pid_mx k : 'M[F]_(k, l)) = delta_mx 0 (widen_ord le_kl i).
  by apply/rowP => j; rewrite !mxE eqxx ltn_ord andbT eq_sym.
by rewrite -rowE rowK.
Qed.

Lemma powers_sub k : (powers_mx A k <= powers_mx A deg)%MS.
Proof.
by apply/row_subP => i; rewrite rowK; have := horner_mx_mem A 'X^i; rewrite rmorphX /= horner_mx_X.
Qed.

Lemma rank_powers k : \rank (powers_mx A k) = minn k deg.
Proof.
have free l : (l <= deg)%N -> \rank (powers_mx A l) = l.
  by move=> le_l; rewrite (powers_prefix le_l) mxrankMfree ?minpoly_mx_free ?rank_pid_mx.
have [/ltnW le_k | le_d] := ltnP k deg; first exact: free.
rewrite -[RHS](free deg (leqnn _)); apply/eqP; rewrite eqn_leq (mxrankS (powers_sub k)) /=.
by rewrite (powers_prefix le_d) mxrankM_maxr.
Qed.

Lemma power_combination k (i : 'I_k) :
  exists c : 'I_(\rank (powers_mx A k)) -> F, A ^+ i = \sum_j c j *: A ^+ j.
Proof.
set s := \rank _; have : (powers_mx A k <= powers_mx A s)%MS.
  rewrite /s rank_powers; case: leqP => _; [exact: submx_refl | exact: powers_sub].
move/row_subP/(_ i)/submxP => [u]; rewrite rowK => /(congr1 vec_mx).
rewrite mxvecK mulmx_sum_row raddf_sum => ->; exists (fun j => u 0 j).
by apply: eq_bigr => j _ /=; rewrite linearZ /= rowK mxvecK.
Qed.

Lemma bank_combination d k : exists Z, forall X : 'M[F]_(n.+1, d),
  bank A X k = bank A X (\rank (powers_mx A k)) *m Z.
Proof.
have /fin_all_exists[c cE] := @power_combination k.
exists (\mxrow_(i < k) \mxcol_j (c i j)%:M) => X.
rewrite mul_mxrow; apply: eq_mxrow => i; rewrite mul_mxrow_mxcol {1}cE mulmx_suml.
by apply: eq_bigr => j _; rewrite mul_mx_scalar scalemxAl.
Qed.
End Powers.

(** Theorem.  Over a field with at least three elements, with an output projection,
    linear IHA with H heads gives the bank for some weights and some number of
    pseudo-heads if and only if H >= ceil(sqrt s), s = rank (I, A, ..., A^(k-1)). *)
Theorem least_heads_projected (F : fieldType) n d k H (A : 'M[F]_n.+1) :
  three_elements F ->
  (exists P dk dv (W : weights F H P (d.+1 + n.+1) dk dv) O,
     forall X, iha_output id W (with_code X) *m O = bank A X k)
  <-> (ceil_sqrt (\rank (powers_mx A k)) <= H)%N.
Proof.
move=> F_three; rewrite -ceil_sqrt_min; split=> [[P [dk [dv [W [O target]]]]] | H_ge].
  by have [] := iha_bounds target F_three.
have [Z ZE] := bank_combination A d.+1 k.
exists H, n.+1, (\sum_(b < H) d.+1)%N, (polynomial_filter d.+1 H A).
exists (first_columns _ 1%:M *m Z) => X.
by rewrite mulmxA -first_columns_projection (theorem3 _ _ H_ge) -ZE.
Qed.

(** Theorem 3 is optimal.  If I, A, ..., A^(k-1) are independent, linear IHA with H
    heads, for some number of pseudo-heads and some weights, has the bank as its
    first columns if and only if H >= ceil(sqrt k); over a field with at least
    three elements. *)
Theorem least_heads (F : fieldType) n d k H (A : 'M[F]_n.+1) :
  three_elements F -> row_free (powers_mx A k) ->
  (exists P dk dv (W : weights F H P (d.+1 + n.+1) dk dv),
     forall X, first_columns _ (iha_output id W (with_code X)) = bank A X k)
  <-> (ceil_sqrt k <= H)%N.
Proof.
move=> F_three /eqP indep; split=> [[P [dk [dv [W target]]]] | H_ge]; last first.
  exists H, n.+1, (\sum_(b < H) d.+1)%N, (polynomial_filter d.+1 H A) => X.
  by apply: theorem3; rewrite ceil_sqrt_min.
rewrite -indep; apply: (proj1 (least_heads_projected d k H A F_three)).
exists P, dk, dv, W, (first_columns _ 1%:M) => X.
by rewrite -first_columns_projection.
Qed.

(* s heads suffice: head h < s holds A^h X, the projection the coefficients.  *)
Lemma rank_heads_suffice (F : fieldType) n d k H (A : 'M[F]_n.+1) :
  (\rank (powers_mx A k) <= H)%N ->
  exists WO, forall X : 'M[F]_(n.+1, d),
    projected_mha (filter_head_q d A) (@filter_head_k F n d H) (@filter_head_v F n d H) WO
      (with_code X) = bank A X k.
Proof.
have [Z ZE] := bank_combination A d k; set s := \rank _ in Z ZE * => H_ge.
pose block (j : 'I_s) : 'M[F]_(d, \sum_(i < k) d) := submxcol Z j.
pose WO (h : nat) := oapp block 0 (insub h); exists (fun h : 'I_H => WO h) => X.
rewrite ZE -{1}(submxcolK Z) mul_mxrow_mxcol /projected_mha.
pose term (h : nat) := A ^+ h *m X *m WO h.
transitivity (\sum_(h < H) term h).
  apply: eq_bigr => h _; congr (_ *m _).
  by rewrite /mha /attention !read_code read_features trmx1 !mulmx1.
transitivity (\sum_(j < s) term j); last by apply: eq_bigr => j _; rewrite /term /WO valK.
rewrite [RHS](big_ord_widen H) // [RHS]big_mkcond; apply: eq_bigr => h _.
by case: ltnP => // le_h; rewrite /term /WO insubF ?mulmx0 // ltnNge le_h.
Qed.

(** Theorem (any field).  With queries and keys that read positions only, and an output
    projection, linear MHA with H heads gives the bank for some weights if and only if
    H >= s, s = rank (I, A, ..., A^(k-1)). *)
Theorem least_heads_position_only (F : fieldType) n d k H (A : 'M[F]_n.+1) :
  (exists dk dv, exists WQ WK : 'I_H -> 'M[F]_(d.+1 + n.+1, dk),
   exists (WV : 'I_H -> 'M[F]_(d.+1 + n.+1, dv)) WO,
     [/\ forall h, position_only (WQ h), forall h, position_only (WK h) &
         forall X, projected_mha WQ WK WV WO (with_code X) = bank A X k])
  <-> (\rank (powers_mx A k) <= H)%N.
Proof.
split=> [[dk [dv [WQ [WK [WV [WO [q_pos k_pos target]]]]]]] | /(rank_heads_suffice d.+1)[WO target]].
  by rewrite -[H]card_ord; apply: position_only_bound q_pos k_pos target.
exists n.+1, d.+1, (filter_head_q d.+1 A), (@filter_head_k F n d.+1 H).
exists (@filter_head_v F n d.+1 H), WO; split=> // h; exact: col_mxKu.
Qed.

(** Theorem.  Over a field with at least three elements the same holds for arbitrary
    weights. *)
Theorem least_heads_mha_projected (F : fieldType) n d k H (A : 'M[F]_n.+1) :
  three_elements F ->
  (exists dk dv, exists WQ WK : 'I_H -> 'M[F]_(d.+1 + n.+1, dk),
   exists (WV : 'I_H -> 'M[F]_(d.+1 + n.+1, dv)) WO,
     forall X, projected_mha WQ WK WV WO (with_code X) = bank A X k)
  <-> (\rank (powers_mx A k) <= H)%N.
Proof.
move=> F_three; split=> [[dk [dv [WQ [WK [WV [WO target]]]]]] | /(rank_heads_suffice d.+1)[WO target]].
  by rewrite -[H]card_ord; apply: projected_heads_bound F_three target.
exists n.+1, d.+1, (filter_head_q d.+1 A), (@filter_head_k F n d.+1 H).
by exists (@filter_head_v F n d.+1 H), WO.
Qed.

(* ------------------------------------------------------------------------ *)
(** * Heads of one width, in order, without a projection *)

(** Theorem.  If linear IHA with H heads of width dv, H dv >= k d, has the bank as its
    first columns, then H >= s or H >= ceil(sqrt k): without a projection as well
    IHA is not bound by the rank alone.  At least three elements, any weights. *)
Theorem iha_ordered_bound (F : fieldType) n d dk dv H P k (A : 'M[F]_n.+1)
    (W : weights F H P (d.+1 + n.+1) dk dv) :
  three_elements F -> (k * d.+1 <= H * dv)%N ->
  (forall X, first_columns _ (iha_output id W (with_code X)) = bank A X k) ->
  (minn (\rank (powers_mx A k)) (ceil_sqrt k) <= H)%N.
Proof.
move=> F_three wide target; have [-> | k_gt0] := posnP k; first by rewrite geq_min leq0n orbT.
have H_gt0 : (0 < H)%N by case: (H) wide; rewrite ?muln_gt0 // mul0n leqn0 muln_eq0; case: (k) k_gt0.
pose h0 := Ordinal H_gt0; pose L := ceil_div k H.
have le_L : (k <= L * H)%N by rewrite -ceil_div_le.
suff : (\rank (powers_mx A L) <= H)%N.
  rewrite !rank_powers !geq_min -ceil_sqrt_min => /orP[L_le | ->]; last by rewrite orbT.
  by apply/orP; right; apply: leq_trans le_L _; rewrite leq_mul2r L_le orbT.
have L_le_k : (L <= k)%N by rewrite ceil_div_le // leq_pmulr.
have column (i : 'I_L) : (i * d.+1 < dv)%N.
  rewrite -(ltn_pmul2l H_gt0); apply: leq_trans wide; rewrite mulnA ltn_pmul2r // mulnC.
  by rewrite ltnNge -ceil_div_le // -ltnNge.
pose O (i : 'I_L) (m : 'I_H) : 'cV[F]_dv := delta_mx (Ordinal (column i)) 0.
have target' X (i : 'I_L) :
    projected_mha (q_h W h0) (@k_h F H (d.+1 + n.+1)) (w_v W) (O i) (with_code X)
    = A ^+ i *m col ord0 X.
  rewrite /projected_mha -mulmx_suml -iha_output_is_mha_h -colE -col_mulmx.
  have := @first_columns_column _ _ H dv k d.+1 _ (fun i : 'I_k => A ^+ i *m X) h0
    (Ordinal (column i)) (widen_ord L_le_k i) ord0 (target X).
  by apply; rewrite mul0n addn0.
have L_gt0 : (0 < L)%N by case: (L) le_L => //; rewrite leqNgt k_gt0.
apply: maximal_vector => x; rewrite -[X in (_ <= X)%N](card_ord H).
exact: (projected_columns x F_three target' (expr0 A : A ^+ Ordinal L_gt0 = 1%:M)).
Qed.

(* More heads than s: head h holds L blocks A^(h L + l) X, and the values carry *)
(* the coefficients of A^l in I, ..., A^(H-1).                                *)
Section Ordered.
Variables (F : fieldType) (n d H L : nat) (A : 'M[F]_n.+1) (c : 'I_L -> 'I_H -> F).
Hypothesis cE : forall l : 'I_L, A ^+ l = \sum_m c l m *: A ^+ m.

Definition rank_filter : weights F H H (d + n.+1) n.+1 (\sum_(l < L) d) := Weights
  (fun h => col_mx 0 (A ^+ (h * L))) (fun m => col_mx 0 (A ^+ m)^T)
  (fun m => col_mx (\mxrow_(l < L) (c l m)%:M) 0)
  (fun m h j => ((m == h) && (j == 0%N :> nat))%:R) (fun m _ j => (m == j)%:R)
  (fun m _ j => (m == j)%:R) (fun h h' j => ((h' == h) && (j == 0%N :> nat))%:R).

Lemma rank_filter_block X (h : 'I_H) (l : 'I_L) :
  submxrow (iha id rank_filter (with_code X) h) l = A ^+ (h * L + l) *m X.
Proof.
have H_gt0 : (0 < H)%N by apply: leq_ltn_trans (ltn_ord h).
rewrite (@iha_pick _ _ _ _ _ _ _ _ _ _ _ h (Ordinal H_gt0)) //.
rewrite pseudo_output_linear submxrow_sum exprD [in RHS]cE mulr_sumr mulmx_suml.
apply: eq_bigr => m _; rewrite /pseudo_q /pseudo_k /pseudo_v.
rewrite (pseudo_pick _ _ (m0 := h)) => [|m']; last by rewrite /= andbT.
rewrite !(pseudo_pick _ _ (m0 := m)) //= !read_code read_features trmxK.
by rewrite !mul_mxrow mxrowK mul_mx_scalar -scalerAr -!scalemxAr -scalemxAl.
Qed.
End Ordered.

(** Theorem.  Over a field with at least three elements, linear IHA with H heads of one
    width dv, H dv >= k d, has the bank as its first columns, for some weights and
    some number of pseudo-heads, if and only if H >= min(s, ceil(sqrt k)). *)
Theorem least_heads_ordered (F : fieldType) n d k H (A : 'M[F]_n.+1) :
  three_elements F ->
  (exists P dk dv, exists W : weights F H P (d.+1 + n.+1) dk dv, (k * d.+1 <= H * dv)%N /\
     forall X, first_columns _ (iha_output id W (with_code X)) = bank A X k)
  <-> (minn (\rank (powers_mx A k)) (ceil_sqrt k) <= H)%N.
Proof.
move=> F_three; split=> [[P [dk [dv [W [wide target]]]]] |].
  exact: iha_ordered_bound F_three wide target.
have width m : (\sum_(b < m) d.+1 = m * d.+1)%N by rewrite sum_nat_const card_ord.
rewrite geq_min -ceil_sqrt_min => /orP[s_le | k_le]; last first.
  exists H, n.+1, (\sum_(b < H) d.+1)%N, (polynomial_filter d.+1 H A).
  by split=> [|X]; [rewrite width mulnA leq_mul2r k_le orbT | apply: theorem3].
have [k0 | k_gt0] := posnP k.
  exists H, n.+1, (\sum_(b < H) d.+1)%N, (polynomial_filter d.+1 H A).
  by split=> [|X]; [rewrite k0 | apply: theorem3; rewrite k0].
have H_gt0 : (0 < H)%N.
  by apply: leq_trans s_le; rewrite rank_powers leq_min k_gt0 mxminpoly_nonconstant.
pose L := ceil_div k H; have le_HL : (k <= H * L)%N by rewrite mulnC -ceil_div_le.
have L_le_k : (L <= k)%N by rewrite ceil_div_le // leq_pmulr.
have /fin_all_exists[c cE] : forall l : 'I_L, exists c : 'I_H -> F, A ^+ l = \sum_m c m *: A ^+ m.
  move=> l; have [c0 c0E] := power_combination A (widen_ord L_le_k l).
  exists (fun m => oapp c0 0 (insub (val m))); rewrite [LHS]c0E.
  pose term (m : nat) := oapp c0 0 (insub m) *: A ^+ m.
  transitivity (\sum_(j < \rank (powers_mx A k)) term j).
    by apply: eq_bigr => j _; rewrite /term valK.
  rewrite (big_ord_widen H) // big_mkcond; apply: eq_bigr => m _.
  by case: ltnP => // le_m; rewrite /term insubF ?scale0r // ltnNge le_m.
exists H, n.+1, (\sum_(l < L) d.+1)%N, (rank_filter d.+1 A c); split.
  by rewrite width mulnA leq_mul2r le_HL orbT.
move=> X; apply: (first_columns_bank _ le_HL) => h b.
by rewrite mxrowK; apply: rank_filter_block.
Qed.

(* k heads suffice: head h holds A^h X. *)
Lemma mha_heads_suffice (F : fieldType) n d k H (A : 'M[F]_n.+1) : (k <= H)%N ->
  exists dk dv, exists WQ WK : 'I_H -> 'M[F]_(d.+1 + n.+1, dk),
  exists WV : 'I_H -> 'M[F]_(d.+1 + n.+1, dv), (k * d.+1 <= H * dv)%N /\
    forall X, first_columns _ (\mxrow_(h < H) mha id WQ WK WV (with_code X) h) = bank A X k.
Proof.
move=> le_k; exists n.+1, (\sum_(b < 1) d.+1)%N, (filter_head_q d.+1 A).
exists (filter_head_k F n d.+1 (k := H)), (fun=> col_mx (\mxrow_(b < 1) 1%:M) 0); split.
  by rewrite big_ord1 leq_mul2r le_k orbT.
move=> X; apply: first_columns_bank => [h b|]; last by rewrite muln1.
rewrite mxrowK /mha (position_head (A ^+ h) (fun=> 1)) mxrowK scale1r.
by rewrite [b]ord1 muln1 addn0.
Qed.

(** Theorem.  Over a field with at least three elements and for k >= 2, if A is not a
    scalar matrix, linear MHA with H heads of one width dv, H dv >= k d, has the bank
    as its first columns for some weights if and only if H >= k. *)
Theorem least_heads_mha (F : fieldType) n d k H (A : 'M[F]_n.+1) :
  three_elements F -> (1 < k)%N -> ~~ is_scalar_mx A ->
  (exists dk dv, exists WQ WK : 'I_H -> 'M[F]_(d.+1 + n.+1, dk),
   exists WV : 'I_H -> 'M[F]_(d.+1 + n.+1, dv), (k * d.+1 <= H * dv)%N /\
     forall X, first_columns _ (\mxrow_(h < H) mha id WQ WK WV (with_code X) h) = bank A X k)
  <-> (k <= H)%N.
Proof.
move=> F_three k2 A_scalar; split=> [[dk [dv [WQ [WK [WV [wide target]]]]]] | ].
  exact: one_width_bound F_three _ _ _ WV wide target k2 A_scalar.
exact: mha_heads_suffice.
Qed.

(* ------------------------------------------------------------------------ *)
(** * Small instances: the hypotheses can be met, and they matter *)

(* The directed path on n + 1 vertices: an edge from j to j + 1.              *)
Definition path_mx (R : ringType) n : 'M[R]_n.+1 := \matrix_(i, j) (i == j.+1 :> nat)%:R.

Lemma path_power (F : fieldType) n i : (i <= n)%N ->
  path_mx F n ^+ i *m delta_mx 0 0 = \col_r (r == i :> nat)%:R.
Proof.
elim: i => [|i IH] le_i.
  by rewrite mul1mx; apply/colP => r; rewrite !mxE andbT.
rewrite exprS -mulmxA IH 1?ltnW //; apply/colP => r; rewrite !mxE.
rewrite (bigD1 (Ordinal (ltnW le_i : i < n.+1)%N)) //= !mxE eqxx mulr1 big1 ?addr0 // => j ne.
by rewrite !mxE (_ : (j == i :> nat) = false) ?mulr0 //; apply: negbTE.
Qed.

(* Its powers I, ..., A^(k-1) are independent for k <= n + 1.                 *)
Lemma path_independent (F : fieldType) n k : (k <= n.+1)%N ->
  row_free (powers_mx (path_mx F n) k).
Proof.
move=> le_k; rewrite /row_free eqn_leq rank_leq_row /=.
apply: leq_trans (krylov_powers _ (delta_mx 0 0) _).
rewrite (_ : krylov _ _ _ = pid_mx k) ?rank_pid_mx //.
apply/row_matrixP => i; rewrite rowK path_power ?(leq_trans (ltn_ord i)) //.
  by apply/rowP => j; rewrite !mxE ltn_ord andbT eq_sym.
by rewrite -ltnS (leq_trans (ltn_ord i)).
Qed.

(** On the directed path the least number of heads of IHA is ceil(sqrt k) for every
    k up to the number of vertices; *)
Corollary path_least_heads (F : fieldType) n d k H :
  three_elements F -> (k <= n.+1)%N ->
  (exists P dk dv (W : weights F H P (d.+1 + n.+1) dk dv),
     forall X, first_columns _ (iha_output id W (with_code X)) = bank (path_mx F n) X k)
  <-> (ceil_sqrt k <= H)%N.
Proof. by move=> F_three le_k; apply: least_heads => //; apply: path_independent. Qed.

(** and that of MHA, with heads of one width dv, H dv >= k d, is k. *)
Corollary path_least_heads_mha (F : fieldType) n d k H :
  three_elements F -> (k <= n.+1)%N ->
  (exists dk dv, exists WQ WK : 'I_H -> 'M[F]_(d.+1 + n.+1, dk),
   exists WV : 'I_H -> 'M[F]_(d.+1 + n.+1, dv), (k * d.+1 <= H * dv)%N /\
     forall X, first_columns _ (\mxrow_(h < H) mha id WQ WK WV (with_code X) h)
               = bank (path_mx F n) X k)
  <-> (k <= H)%N.
Proof.
move=> F_three le_k; have [k2 | k_le1] := ltnP 1 k.
  apply: least_heads_mha => //; case: n le_k => [|n] le_k; first by rewrite leqNgt k2 in le_k.
  by apply/is_scalar_mxP => -[t /matrixP/(_ 1 0)]; rewrite !mxE /= => /eqP; rewrite oner_eq0.
split=> [[dk [dv [_ [_ [_ [wide _]]]]]] | ]; last exact: mha_heads_suffice.
have [-> // | k_gt0] := posnP k; apply: leq_trans k_le1 _.
by case: H wide => //; rewrite mul0n leqn0 muln_eq0 orbF => /eqP k0; rewrite k0 in k_gt0.
Qed.

(** One head fewer fails: on the path of five vertices two heads, with any number of
    pseudo-heads and any weights, do not give the bank of five powers. *)
Corollary two_heads_fail (F : fieldType) d P dk dv (W : weights F 2 P (d.+1 + 5) dk dv) :
  three_elements F ->
  ~ forall X, first_columns _ (iha_output id W (with_code X)) = bank (path_mx F 4) X 5.
Proof.
move=> F_three target; suff : (ceil_sqrt 5 <= 2)%N by [].
by apply/(path_least_heads d 2 F_three (leqnn 5)); exists P, dk, dv, W.
Qed.

(** Three elements are needed: over a field of two elements one head with a projection
    gives [X, A X] for A = [[0, 0], [0, 1]] and every X, though rank (I, A) = 2. *)
Theorem two_elements_one_head (F : fieldType) : (forall x : F, x = 0 \/ x = 1) ->
  let A : 'M[F]_2 := delta_mx 1 1 in
  \rank (powers_mx A 2) = 2%N /\
  exists WQ WK : 'I_1 -> 'M[F]_(1 + 2, 1 + 2), exists (WV : 'I_1 -> 'M[F]_(1 + 2, 2)) WO,
    forall X, projected_mha WQ WK WV WO (with_code X) = bank A X 2.
Proof.
move=> two A; split.
  rewrite rank_powers; apply/minn_idPl; rewrite ltnNge mxminpoly_linear_is_scalar.
  apply/is_scalar_mxP => -[t /matrixP AE]; have := AE 1 1; have := AE 0 0.
  by rewrite !mxE /= => <- /eqP; rewrite oner_eq0.
have [WQ [WK [WV [s0 s1 _]]]] := two_elements_two_classes two.
exists (fun=> WQ), (fun=> WK), (fun=> WV), (fun=> \mxrow_(i < 2) delta_mx i 0) => X.
rewrite /projected_mha big_ord1 mul_mxrow; apply: eq_mxrow => i; rewrite -colE.
have col1 (Y : 'M[F]_(2, 1)) : col ord0 Y = Y by apply/matrixP => r c; rewrite mxE [c]ord1.
by case: i => -[|[|//]] lt_i; [have := s0 X | have := s1 X]; rewrite /= col1 => <-;
   congr (col _ _); apply/val_inj.
Qed.

(** The identity must be among the targets: without it one head with a projection
    gives M X and M' X for two matrices whose values at a vector x are independent,
    while [projected_columns] bounds the rank by the number of heads. *)
Theorem identity_needed (F : fieldType) :
  exists (M : 'I_2 -> 'M[F]_2) (x : 'cV[F]_2),
  \rank (\matrix_i (M i *m x)^T) = 2%N /\
  exists WQ WK : 'I_1 -> 'M[F]_(1 + 2, 1 + 2), exists (WV : 'I_1 -> 'M[F]_(1 + 2, 2)) O,
    forall (X : 'M[F]_(2, 1)) i,
      projected_mha WQ WK WV (O i) (with_code X) = M i *m col ord0 X.
Proof.
have [WQ [WK [WV [s0 s1 _]]]] := powers_needed F.
exists (fun i => if i == 0 then delta_mx 0 0 else 1%:M + delta_mx 0 1).
exists (\col_r (if r == 0 then 1 else - 1)); split.
  set K := \matrix_i _; suff -> : K = diag_mx (\row_j (if j == 0 then 1 else - 1)).
    apply: mxrank_unit; rewrite unitmxE det_diag !big_ord_recl big_ord0 !mxE /=.
    by rewrite mulr1 mul1r unitrN1.
  apply/row_matrixP => i; rewrite rowK; apply/rowP => j; rewrite !mxE !big_ord_recl big_ord0.
  case: i => -[|[|//]] ?; case: j => -[|[|//]] ?; rewrite !mxE /= ?mulr0n ?mulr1n;
    by rewrite ?(mul0r, mul1r, mulr1, addr0, add0r) ?subrr.
exists (fun=> WQ), (fun=> WK), (fun=> WV), (fun i _ => delta_mx i 0) => X i.
rewrite /projected_mha big_ord1 -colE.
by case: i => -[|[|//]] lt_i; [have := s0 X | have := s1 X]; rewrite /= => <-;
   congr (col _ _); apply/val_inj.
Qed.
