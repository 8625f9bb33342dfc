(* Linear heads with an output projection: H heads reach at most H dimensions. *)
(*                                                                            *)
(* If H heads with a projection produce [X, AX, ..., A^(k-1) X] for all X,    *)
(* then x, Ax, ..., A^(k-1) x span at most H dimensions, for every vector x.  *)
(* F is any field with at least three elements.                               *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem3 Reductions OneClass.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * The dimension argument *)

(* All matrices of this part are transposed: they act on row vectors.  The    *)
(* fixed data of the heads are the column beta, the matrices Gamma and Delta  *)
(* with one row per head, and one matrix E per head; a feature is given by    *)
(* one number a and one column of W per head.                                 *)
Section Dimension.
Variables (F : fieldType) (N H : nat) (beta : 'cV[F]_H) (Gamma Delta : 'M[F]_(H, N)).
Variable E : 'I_H -> 'M[F]_N.
Implicit Types (a : 'rV[F]_H) (W : 'M[F]_(N, H)).

Definition admissible a W :=
  [/\ a *m beta = 0, a *m Delta = 0 & (W *m beta)^T + a *m Gamma = 0].

Definition operator a W : 'M[F]_N :=
  (\tr (W *m Gamma))%:M + W *m Delta + \sum_q a 0 q *: E q.

Lemma admissible_sum k (y : 'I_k -> F) (a : 'I_k -> 'rV[F]_H) (W : 'I_k -> 'M[F]_(N, H)) :
  (forall i, admissible (a i) (W i)) ->
  admissible (\sum_i y i *: a i) (\sum_i y i *: W i).
Proof.
move=> adm; split; rewrite ?mulmx_suml; last first.
  rewrite raddf_sum -big_split big1 //= => i _; have [_ _ e] := adm i.
  by rewrite -!scalemxAl linearZ /= -scalerDr e scaler0.
all: by rewrite big1 // => i _; have [e1 e2 _] := adm i; rewrite -scalemxAl ?e1 ?e2 scaler0.
Qed.

Lemma operator_sum k (y : 'I_k -> F) (a : 'I_k -> 'rV[F]_H) (W : 'I_k -> 'M[F]_(N, H)) :
  operator (\sum_i y i *: a i) (\sum_i y i *: W i) = \sum_i y i *: operator (a i) (W i).
Proof.
have trE : \tr ((\sum_i y i *: W i) *m Gamma) = \sum_i y i * \tr (W i *m Gamma).
  rewrite mulmx_suml [\tr _]raddf_sum; apply: eq_bigr => i _ /=.
  by rewrite -scalemxAl mxtraceZ.
rewrite /operator trE raddf_sum mulmx_suml /=.
under [RHS]eq_bigr do rewrite !scalerDr.
rewrite !big_split /=; congr (_ + _ + _).
- by apply: eq_bigr => i _; rewrite scale_scalar_mx.
- by apply: eq_bigr => i _; rewrite scalemxAl.
under eq_bigr do rewrite summxE scaler_suml.
rewrite exchange_big /=; apply: eq_bigr => i _; rewrite scaler_sumr.
by apply: eq_bigr => q _; rewrite mxE scalerA.
Qed.

Variable x : 'rV[F]_N.
Let Ex : 'M[F]_(H, N) := \matrix_q (x *m E q).

Lemma mul_operator a W :
  x *m operator a W = \tr (W *m Gamma) *: x + x *m W *m Delta + a *m Ex.
Proof.
rewrite /operator !mulmxDr mul_mx_scalar mulmxA; congr (_ + _).
rewrite mulmx_sumr mulmx_sum_row; apply: eq_bigr => q _.
by rewrite -scalemxAr rowK.
Qed.

(* k features, one of which is the identity, and their values at x.           *)
Variables (k : nat) (a : 'I_k -> 'rV[F]_H) (W : 'I_k -> 'M[F]_(N, H)) (i0 : 'I_k).
Hypothesis adm : forall i, admissible (a i) (W i).
Hypothesis one : operator (a i0) (W i0) = 1%:M.
Let K : 'M[F]_(k, N) := \matrix_i (x *m operator (a i) (W i)).

(* Every vector in the span of the values is the value of an admissible pair. *)
Lemma span_values (p : 'rV[F]_N) : (p <= K)%MS ->
  exists b V, admissible b V /\ p = x *m operator b V.
Proof.
case/submxP => y ->; exists (\sum_i y 0 i *: a i), (\sum_i y 0 i *: W i).
split; first exact: admissible_sum.
rewrite operator_sum mulmx_sumr mulmx_sum_row; apply: eq_bigr => i _.
by rewrite rowK scalemxAr.
Qed.

(* The count: K lies in the rows of Delta, plus x, plus U Ex.  If it has more *)
(* than H dimensions, then everything that could have been lost is not.       *)
Lemma tight m (U : 'M[F]_(m, H)) : (H < \rank K)%N ->
  (U <= kermx Delta)%MS -> (forall b V, admissible b V -> (b <= U)%MS) ->
  [/\ (Delta <= K)%MS, (Delta :&: (x + U *m Ex) <= (0 : 'M_N))%MS,
      (x :&: (U *m Ex) <= (0 : 'M_N))%MS, \rank (U *m Ex) = \rank U & (kermx Delta <= U)%MS]
  /\ x != 0.
Proof.
move=> K_big U_ker a_U; pose S := (Delta + (x + U *m Ex))%MS.
have K_S : (K <= S)%MS.
  apply/row_subP => i; rewrite rowK mul_operator.
  have aS : (a i *m Ex <= S)%MS.
    have := submxMr Ex (a_U _ _ (adm i)) => /submx_trans; apply.
    by rewrite /S addsmxA addsmxSr.
  have xS : (x <= S)%MS by apply: submx_trans (addsmxSl _ _) (addsmxSr _ _).
  by rewrite !addmx_sub // ?scalemx_sub // (submx_trans (submxMl _ _)) // addsmxSl.
have rk := leqif_trans (mxrank_leqif_sup K_S) (leqif_trans (mxrank_adds_leqif Delta _)
  (leqif_add (elimT (leqif_refl (\rank Delta) true) isT) (leqif_trans (mxrank_adds_leqif x (U *m Ex))
  (leqif_add (leqif_eq (rank_leq_row x)) (leqif_trans (leqif_eq (mxrankM_maxl U Ex))
  (mxrank_leqif_sup U_ker)))))).
have := geq_leqif rk; rewrite mxrank_ker add1n addnS subnKC ?rank_leq_row // K_big.
case/esym/and5P=> S_K cap1 _ cap2 /and3P[/eqP x1 /eqP UE ker_U].
split; last by rewrite -mxrank_eq0 x1.
by split=> //; apply: submx_trans S_K; exact: addsmxSl.
Qed.

(* Then x and the part in a are independent of one another and of Delta.      *)
Lemma independent m (U : 'M[F]_(m, H)) s (b : 'rV[F]_H) :
  (Delta :&: (x + U *m Ex) <= (0 : 'M_N))%MS -> (x :&: (U *m Ex) <= (0 : 'M_N))%MS ->
  \rank (U *m Ex) = \rank U -> x != 0 ->
  (b <= U)%MS -> ((s *: x + b *m Ex)%R <= Delta)%MS -> s = 0 /\ b = 0.
Proof.
move=> cap1 cap2 /(mxrank_injP _)/eqP inj x_neq0 bU sb_Delta.
have bEx : (b *m Ex <= U *m Ex)%MS by exact: submxMr.
have sx_bEx : s *: x + b *m Ex = 0.
  apply/eqP; rewrite -submx0; apply: submx_trans cap1; rewrite sub_capmx sb_Delta.
  by apply: addmx_sub_adds; rewrite ?scalemx_sub.
have sx : s *: x = 0.
  apply/eqP; rewrite -submx0; apply: submx_trans cap2; rewrite sub_capmx scalemx_sub //.
  by rewrite -[s *: x](addrK (b *m Ex)) sx_bEx sub0r -scaleN1r scalemx_sub.
have b0 : (b <= U :&: kermx Ex)%MS.
  by rewrite sub_capmx bU; apply/sub_kermxP; rewrite -sx_bEx sx add0r.
split; last by apply/eqP; rewrite -submx0 -inj.
by apply/eqP; move/eqP: sx; rewrite scaler_eq0 (negbTE x_neq0) orbF.
Qed.

(* A matrix that vanishes where Delta does is a multiple of Delta.            *)
Lemma factor m (B : 'M[F]_(H, m)) : (kermx Delta <= kermx B)%MS -> exists t, B = Delta *m t.
Proof.
move=> ker_B; suff /submxP[t Bt] : (B^T <= Delta^T)%MS.
  by exists t^T; rewrite -[B]trmxK Bt trmx_mul trmxK.
rewrite submxE -[_ *m _]trmxK trmx_mul trmxK trmx_eq0; apply/eqP/sub_kermxP.
apply: submx_trans ker_B; apply/sub_kermxP.
by rewrite -[LHS]trmxK trmx_mul trmxK mulmx_coker trmx0.
Qed.

(** Let every matrix of a list be an admissible operator, and one of them the
    identity.  Then their values at x span at most H dimensions. *)
Theorem values_rank : (\rank K <= H)%N.
Proof.
rewrite leqNgt; apply/negP => big.
have in_Delta (b : 'rV[F]_H) V : admissible b V -> (b <= kermx Delta)%MS.
  by case=> _ /sub_kermxP.
have [[Delta_K cap1 cap2 UE _] x_neq0] := tight big (submx_refl _) in_Delta.
have ind s (b : 'rV[F]_H) : b *m Delta = 0 -> ((s *: x + b *m Ex)%R <= Delta)%MS -> s = 0 /\ b = 0.
  by move=> /sub_kermxP; exact: independent cap1 cap2 UE x_neq0.
have [a_beta a_Delta a_Gamma] := adm i0.
have [trace_one a0] : 1 - \tr (W i0 *m Gamma) = 0 /\ - a i0 = 0.
  apply: ind; first by rewrite mulNmx a_Delta oppr0.
  have := congr1 (mulmx x) one; rewrite mul_operator mulmx1 => xE.
  rewrite scalerBl scale1r mulNmx -{1}xE addrAC addrK addrAC subrr add0r.
  exact: submxMl.
move/eqP: a0; rewrite oppr_eq0 => /eqP a0; move/subr0_eq/esym: trace_one => trace_one.
have W_Delta : W i0 *m Delta = 0.
  have := one; rewrite /operator trace_one a0 big1 ?addr0 => [|q _].
    by rewrite -[RHS]addr0 => /addrI.
  by rewrite mxE scale0r.
have beta0 : beta = 0.
  have in_beta (b : 'rV[F]_H) V : admissible b V -> (b <= kermx Delta :&: kermx beta)%MS.
    by case=> /sub_kermxP b_beta /sub_kermxP b_Delta _; rewrite sub_capmx b_Delta.
  have [[_ _ _ _ ker] _] := tight big (capmxSl _ _) in_beta.
  have [t bt] := factor (submx_trans ker (capmxSr _ _)).
  rewrite bt; apply/row_matrixP => r; rewrite row0 row_mul.
  have [b [V [[_ b_Delta b_Gamma] rE]]] := span_values (submx_trans (row_sub r Delta) Delta_K).
  have [tr0 b0] : \tr (V *m Gamma) = 0 /\ b = 0.
    apply: ind => //; have := row_sub r Delta; rewrite rE mul_operator addrAC => sub_r.
    by rewrite -[X in (X <= _)%MS](addrK (x *m V *m Delta)) addmx_sub ?eqmx_opp ?submxMl.
  move/eqP: b_Gamma; rewrite b0 mul0mx addr0 trmx_eq0 => /eqP V_beta.
  by rewrite rE mul_operator tr0 b0 scale0r mul0mx add0r addr0 -!mulmxA -bt V_beta mulmx0.
have in_Gamma (b : 'rV[F]_H) V : admissible b V -> (b <= kermx Delta :&: kermx Gamma)%MS.
  case=> _ /sub_kermxP b_Delta; rewrite beta0 mulmx0 trmx0 add0r => /sub_kermxP b_Gamma.
  by rewrite sub_capmx b_Delta.
have [[_ _ _ _ ker] _] := tight big (capmxSl _ _) in_Gamma.
have [t Gt] := factor (submx_trans ker (capmxSr _ _)).
by move/eqP: trace_one; rewrite Gt mulmxA W_Delta mul0mx mxtrace0 eq_sym oner_eq0.
Qed.
End Dimension.

(* ------------------------------------------------------------------------ *)
(** * The equations of one feature *)

Lemma quadratic_zero (F : fieldType) (p q : F) : three_elements F ->
  (forall t, t * (t * p) + t * q = 0) -> p = 0 /\ q = 0.
Proof.
move=> F_three line; have [] := @quadratic_line F [lmodType F of F^o] 1 0 p q F_three.
  by move=> t; rewrite mulr1 addr0; exact: line.
by rewrite scale1r scale0r add0r.
Qed.

Section OneFeature.
Variables (F : fieldType) (n H : nat).
Hypothesis F_three : three_elements F.
Variables (B : 'I_H -> 'M[F]_1) (C : 'I_H -> 'rV[F]_n.+2) (D : 'I_H -> 'cV[F]_n.+2).
Variables (E : 'I_H -> 'M[F]_n.+2).

Let beta : 'cV[F]_H := \col_q B q 0 0.
Let Gamma : 'M[F]_(H, n.+2) := \matrix_q C q.
Let Delta : 'M[F]_(H, n.+2) := \matrix_q (D q)^T.

(* One target: v1 q and v0 q are the weights of head q for it.                *)
Variables (v1 : 'I_H -> 'M[F]_1) (v0 : 'I_H -> 'cV[F]_n.+2) (M : 'M[F]_n.+2).
Hypothesis target : forall x : 'cV[F]_n.+2,
  \sum_q scores (B q) (C q) (D q) (E q) x *m (x *m v1 q + v0 q) = M *m x.

Let a : 'rV[F]_H := \row_q v1 q 0 0.
Let W : 'M[F]_(n.+2, H) := \matrix_(r, q) v0 q r 0.

Lemma feature_equations (r : 'I_n.+2) :
  [/\ \sum_q B q 0 0 * v1 q 0 0 = 0, \sum_q D q r 0 * v1 q 0 0 = 0
    & \sum_q (B q 0 0 * v0 q r 0 + C q 0 r * v1 q 0 0) = 0].
Proof.
have target' Z : \sum_q scores (B q) (C q) (D q) (E q) Z *m (Z *m v1 q + v0 q)
    = M *m col ord0 Z.
  by rewrite target; congr (_ *m _); apply/matrixP => i j; rewrite mxE [j]ord1.
have [r' rr'] := other_token r; have r'r : r' != r by rewrite eq_sym.
have [] := @quadratic_zero F (\sum_q B q 0 0 * v1 q 0 0)
    (\sum_q (B q 0 0 * v0 q r 0 + C q 0 r * v1 q 0 0)) F_three.
  move=> t; have [/matrixP/(_ 0 0) e _] := two_row_sums r'r target' t%:M.
  move: e; rewrite summxE [RHS]mxE => e; rewrite -[RHS]e !mulr_sumr -big_split.
  apply: eq_bigr => q _ /=; rewrite !(mxE, big_ord1) eqxx mulr1n.
  by rewrite !mulrDr addrA !(mulrCA t (B q 0 0)) (mulrCA t (C q 0 r)) !mulrA.
move=> ba_eq bv_eq; split=> //.
have [] := @quadratic_zero F (\sum_q D q r 0 * v1 q 0 0)
    (\sum_q (D q r 0 * v0 q r' 0 + E q r r' * v1 q 0 0) - M r r') F_three => // t.
have [_ /matrixP/(_ 0 0)] := two_row_sums rr' target' t%:M.
rewrite summxE -!colE !(mxE, big_ord1) mulr1n => e.
rewrite mulrBr [t * M _ _]mulrC -e !mulr_sumr addrA -big_split -sumrB big1 //= => q _.
rewrite -colE !(mxE, big_ord1) mulr1n.
by rewrite !mulrDr addrA !(mulrCA t (D q r 0)) (mulrCA t (E q r r')) !mulrA subrr.
Qed.

(* Head q at x, degree by degree.                                             *)
Lemma head_at q (x : 'cV[F]_n.+2) :
  scores (B q) (C q) (D q) (E q) x *m (x *m v1 q + v0 q) =
  ((x^T *m x) 0 0 * (B q 0 0 * v1 q 0 0)) *: x
  + (B q 0 0 * (x^T *m v0 q) 0 0 + (C q *m x) 0 0 * v1 q 0 0) *: x
  + (x^T *m x) 0 0 *: (v1 q 0 0 *: D q)
  + ((C q *m v0 q) 0 0 *: x + (x^T *m v0 q) 0 0 *: D q + v1 q 0 0 *: (E q *m x))
  + E q *m v0 q.
Proof.
have SE (z : 'cV[F]_n.+2) : scores (B q) (C q) (D q) (E q) x *m z =
    (B q 0 0 * (x^T *m z) 0 0) *: x + (C q *m z) 0 0 *: x + (x^T *m z) 0 0 *: D q + E q *m z.
  by rewrite /scores !mulmxDl -!mulmxA !mulmx11 [(_ *: B q) 0 0]mxE (mulrC (B q 0 0)).
have dotD (y : 'rV[F]_n.+2) :
    (y *m (v1 q 0 0 *: x + v0 q)) 0 0 = v1 q 0 0 * (y *m x) 0 0 + (y *m v0 q) 0 0.
  by rewrite mulmxDr -scalemxAr mxE [X in X + _]mxE.
rewrite mulmx11 SE !dotD mulmxDr -scalemxAr.
move: ((x^T *m x) 0 0) ((x^T *m v0 q) 0 0) ((C q *m x) 0 0) ((C q *m v0 q) 0 0) => s nu mu kappa.
rewrite !scalerDl mulrDr !scalerDl -!scalerA.
rewrite !scalerA (mulrC mu) !(mulrC s) -!mulrA (mulrC s).
by rewrite [LHS](AC (2*2*2*2) (1*(2*3)*5*(4*6*7)*8))%AC.
Qed.

Lemma operator_at (x : 'cV[F]_n.+2) :
  (operator Gamma Delta (fun q => (E q)^T) a W)^T *m x =
  \sum_q ((C q *m v0 q) 0 0 *: x + (x^T *m v0 q) 0 0 *: D q + v1 q 0 0 *: (E q *m x)).
Proof.
rewrite /operator 2!linearD /= !mulmxDl !big_split; congr (_ + _ + _) => /=.
- rewrite tr_scalar_mx mul_scalar_mx -scaler_suml mxtrace_mulC; congr (_ *: x).
  apply: eq_bigr => q _; rewrite !mxE; apply: eq_bigr => r _; by rewrite !mxE.
- rewrite trmx_mul -mulmxA; apply/colP => r; rewrite mxE summxE.
  apply: eq_bigr => q _; rewrite !mxE mulrC; congr (_ * _).
  by apply: eq_bigr => r' _; rewrite !mxE mulrC.
- rewrite [(\sum_q _)^T]raddf_sum mulmx_suml; apply: eq_bigr => q _ /=.
  by rewrite linearZ /= trmxK -scalemxAl mxE.
Qed.

(** The equations of degree 3 and 2 make the pair (a, W) admissible, and the
    equation of degree 1 makes the (transposed) target its operator. *)
Lemma target_operator :
  admissible beta Gamma Delta a W /\ M^T = operator Gamma Delta (fun q => (E q)^T) a W.
Proof.
split.
  split; apply/matrixP => i r; rewrite ?ord1 !mxE.
  - have [e _ _] := feature_equations ord0.
    by rewrite -[RHS]e; apply: eq_bigr => q _; rewrite !mxE mulrC.
  - have [_ e _] := feature_equations r.
    by rewrite -[RHS]e; apply: eq_bigr => q _; rewrite !mxE mulrC.
  have [_ _ e] := feature_equations r; rewrite -[RHS]e -big_split.
  by apply: eq_bigr => q _; rewrite !mxE mulrC [v1 _ _ _ * _]mulrC.
have [ba _ _] := feature_equations ord0.
apply: (canLR trmxK); apply: mx_ext => x; rewrite operator_at -target.
under eq_bigr do rewrite head_at; rewrite !big_split /=.
rewrite -scaler_suml -mulr_sumr ba mulr0 scale0r add0r -scaler_sumr -scaler_suml.
have -> : \sum_q (B q 0 0 * (x^T *m v0 q) 0 0 + (C q *m x) 0 0 * v1 q 0 0) = 0.
  transitivity (\sum_r x r 0 * \sum_q (B q 0 0 * v0 q r 0 + C q 0 r * v1 q 0 0)).
    under [RHS]eq_bigr do rewrite mulr_sumr; rewrite exchange_big; apply: eq_bigr => q _.
    rewrite !mxE mulr_sumr mulr_suml -big_split; apply: eq_bigr => r _ /=.
    by rewrite mxE mulrDr mulrCA [x r 0 * (C q 0 r * _)]mulrA [x r 0 * C q 0 r]mulrC.
  by rewrite big1 // => r _; have [_ _ ->] := feature_equations r; rewrite mulr0.
have -> : \sum_q v1 q 0 0 *: D q = 0.
  apply/colP => r; have [_ e _] := feature_equations r; rewrite mxE -[RHS]e summxE.
  by apply: eq_bigr => q _; rewrite mxE mulrC.
have -> : \sum_q E q *m v0 q = 0.
  rewrite -[RHS](mulmx0 _ M) -target; apply: eq_bigr => q _.
  by rewrite /scores trmx0 !(mul0mx, mulmx0, add0r).
by rewrite scale0r scaler0 addr0 !add0r.
Qed.

End OneFeature.

(* ------------------------------------------------------------------------ *)
(** * The Krylov bound *)

(* The rows x, A x, ..., A^(k-1) x.                                           *)
Definition krylov (F : fieldType) n (A : 'M[F]_n.+1) (x : 'cV[F]_n.+1) k : 'M[F]_(k, n.+1) :=
  \matrix_(i < k) (A ^+ i *m x)^T.

Section Projected.
Variables (F : fieldType) (n d dk dv k : nat) (T : finType).
Hypothesis F_three : three_elements F.

(* A head, applied to X = x e_0^T and a column of the projection.             *)
Lemma head_one_feature N (WQ WK : 'M[F]_(d.+1 + N.+1, dk)) (WV : 'M[F]_(d.+1 + N.+1, dv))
    (O : 'cV[F]_dv) (x : 'cV[F]_N.+1) :
  let e := delta_mx 0 0 : 'rV[F]_d.+1 in let Y := with_code (x *m e) in
  let G := WQ *m WK^T in
  attention id (Y *m WQ) (Y *m WK) (Y *m WV) *m O =
  scores (e *m ulsubmx G *m e^T) (e *m ursubmx G) (dlsubmx G *m e^T) (drsubmx G) x
  *m (x *m (e *m (usubmx WV *m O)) + dsubmx WV *m O).
Proof.
move=> e Y G; rewrite /attention scores_blocks -[LHS]mulmxA; congr (_ *m _).
  by rewrite /scores trmx_mul !mulmxA.
by rewrite -{1}(vsubmxK WV) mul_row_col mul1mx mulmxDl !mulmxA.
Qed.

Lemma projected_values (WQ WK : T -> 'M[F]_(d.+1 + n.+2, dk))
    (WV : T -> 'M[F]_(d.+1 + n.+2, dv)) (O : 'I_k -> T -> 'cV[F]_dv)
    (M : 'I_k -> 'M[F]_n.+2) (x : 'cV[F]_n.+2) i0 :
  (forall (X : 'M[F]_(n.+2, d.+1)) i,
     projected_mha WQ WK WV (O i) (with_code X) = M i *m col ord0 X) ->
  M i0 = 1%:M -> (\rank (\matrix_i (M i *m x)^T) <= #|T|)%N.
Proof.
move=> target one; pose e := delta_mx 0 0 : 'rV[F]_d.+1.
pose t (q : 'I_#|T|) := enum_val q; pose G q := WQ (t q) *m (WK (t q))^T.
pose B q := e *m ulsubmx (G q) *m e^T; pose C q := e *m ursubmx (G q).
pose D q := dlsubmx (G q) *m e^T; pose E q := drsubmx (G q).
pose v1 i q := e *m (usubmx (WV (t q)) *m O i (t q)).
pose v0 i q := dsubmx (WV (t q)) *m O i (t q).
have target' i (z : 'cV[F]_n.+2) :
    \sum_q scores (B q) (C q) (D q) (E q) z *m (z *m v1 i q + v0 i q) = M i *m z.
  have -> : M i *m z = M i *m col ord0 (z *m e).
    by rewrite colE -mulmxA -colE [col _ _]mx11_scalar !mxE mulmx1.
  rewrite -target /projected_mha (reindex t) /=; last first.
    by exists enum_rank => ? _; rewrite /t ?enum_rankK ?enum_valK.
  by apply: eq_bigr => q _; rewrite /mha head_one_feature.
have pair i := target_operator F_three (target' i).
have := @values_rank F n.+2 #|T| _ _ _ (fun q => (E q)^T) x^T k _ _ i0 (fun i => (pair i).1).
rewrite -(pair i0).2 one trmx1 => /(_ erefl); congr (\rank _ <= _)%N.
by apply/row_matrixP => i; rewrite !rowK -(pair i).2 trmx_mul.
Qed.

End Projected.

(* The same for one token too, where there must be at least one head.         *)
Lemma projected_columns (F : fieldType) n d dk dv k (T : finType)
    (WQ WK : T -> 'M[F]_(d.+1 + n.+1, dk)) (WV : T -> 'M[F]_(d.+1 + n.+1, dv))
    (O : 'I_k -> T -> 'cV[F]_dv) (M : 'I_k -> 'M[F]_n.+1) (x : 'cV[F]_n.+1) i0 :
  three_elements F ->
  (forall (X : 'M[F]_(n.+1, d.+1)) i,
     projected_mha WQ WK WV (O i) (with_code X) = M i *m col ord0 X) ->
  M i0 = 1%:M -> (\rank (\matrix_i (M i *m x)^T) <= #|T|)%N.
Proof.
move=> F_three target one.
have T_gt0 : (0 < #|T|)%N.
  rewrite lt0n; apply/negP => /eqP/card0_eq T0.
  have := target (delta_mx 0 0) i0; rewrite one mul1mx.
  rewrite /projected_mha big_pred0 // => /matrixP/(_ 0 0)/eqP.
  by rewrite !mxE eq_sym oner_eq0.
case: n => [|m] in WQ WK WV M x target one *; first exact: leq_trans (rank_leq_col _) T_gt0.
exact: (projected_values F_three x target one).
Qed.

(** Theorem: H linear heads with an output projection (heads indexed by T) that
    produce the bank [X, A X, ..., A^(k-1) X] for every X are at least as many as
    the dimensions that x, A x, ..., A^(k-1) x span, for every vector x.  Any
    weights, any A, over a field with at least three elements. *)
Theorem krylov_bound (F : fieldType) n d dk dv k (T : finType) (A : 'M[F]_n.+1)
    (WQ WK : T -> 'M[F]_(d.+1 + n.+1, dk))
    (WV : T -> 'M[F]_(d.+1 + n.+1, dv)) (WO : T -> 'M[F]_(dv, \sum_(i < k) d.+1))
    (x : 'cV[F]_n.+1) :
  three_elements F ->
  (forall X, projected_mha WQ WK WV WO (with_code X) = bank A X k) ->
  (\rank (krylov A x k) <= #|T|)%N.
Proof.
move=> F_three target; have [k0 | k_gt0] := posnP k.
  by apply: leq_trans (rank_leq_row _) _; rewrite k0.
pose O (i : 'I_k) t := col ord0 (submxrow (WO t) i).
have target' X i : projected_mha WQ WK WV (O i) (with_code X) = A ^+ i *m col ord0 X.
  rewrite -col_mulmx -[A ^+ i *m X](mxrowK (fun i : 'I_k => A ^+ i *m X)).
  rewrite -[\mxrow_i _]target /projected_mha submxrow_sum [RHS]raddf_sum.
  by apply: eq_bigr => t _ /=; rewrite -mul_submxrow col_mulmx.
exact: (projected_columns x F_three target' (expr0 A : A ^+ Ordinal k_gt0 = 1%:M)).
Qed.

(* ------------------------------------------------------------------------ *)
(** * A vector on which the powers are as independent as they can be *)

(* Without a factorisation algorithm for F such a vector cannot be computed,  *)
(* so its existence is stated for the proof of a boolean (`classically`).     *)
Section Factors.
Variable F : fieldType.
Implicit Types (p q r : {poly F}).

Lemma irreducible_factor p : (1 < size p)%N ->
  classically (exists2 r, irreducible_poly r & r %| p).
Proof.
have [m] := ubnP (size p); elim: m p => // m IH p le_p p_gt1 b factor_b.
apply/negPn/negP => nb; case/negP: (nb); apply: (factor_b); exists p => //.
split=> // q q_neq1 q_p; apply/negPn/negP => q_neqp; case/negP: nb.
have p0 : p != 0 by rewrite -size_poly_gt0 ltnW.
have q0 : q != 0 by apply: contraNneq p0 => q0; rewrite q0 dvd0p in q_p.
have lt_q : (size q < size p)%N.
  by rewrite ltn_neqAle dvdp_leq // andbT dvdp_size_eqp.
have q_gt1 : (1 < size q)%N by rewrite ltn_neqAle eq_sym q_neq1 size_poly_gt0.
apply: (IH q (leq_trans lt_q le_p) q_gt1) => -[r r_irr r_q]; apply: factor_b.
by exists r => //; apply: dvdp_trans r_q q_p.
Qed.

(* The multiplicity of an irreducible polynomial in p.                        *)
Lemma split_power r p : irreducible_poly r -> p != 0 ->
  exists e q, p = r ^+ e * q /\ coprimep r q.
Proof.
case=> r_gt1 r_irr; have [m] := ubnP (size p); elim: m p => // m IH p le_p p0.
have r0 : r != 0 by rewrite -size_poly_gt0 ltnW.
have [r_p | r_p] := boolP (r %| p); last first.
  exists 0%N, p; rewrite expr0 mul1r; split=> //.
  rewrite coprimep_def; apply: contraR r_p => g_neq1.
  by rewrite -(eqp_dvdl _ (r_irr _ g_neq1 (dvdp_gcdl r p))) dvdp_gcdr.
have pE := divpK r_p; have d0 : p %/ r != 0 by rewrite dvdp_div_eq0.
have [|e [q [dE co]]] := IH (p %/ r) _ d0.
  rewrite -ltnS; apply: leq_trans le_p; rewrite size_divp // ltnS ltn_subrL.
  by rewrite size_poly_gt0 p0 andbT; case: (size r) r_gt1 => [|[]].
by exists e.+1, q; rewrite -pE dE exprSr mulrAC.
Qed.
End Factors.

Section MaximalVector.
Variables (F : fieldType) (n : nat) (A : 'M[F]_n.+1).
Implicit Types (p q r : {poly F}) (x y : 'rV[F]_n.+1).

(* The polynomials that annihilate x are the multiples of p.                  *)
Let annihilator x p := forall q, (x *m horner_mx A q == 0) = (p %| q).

Lemma horner_mul x p q : x *m horner_mx A (p * q) = x *m horner_mx A p *m horner_mx A q.
Proof. by rewrite rmorphM mulmxA. Qed.

(* Coprime annihilators multiply.                                             *)
Lemma annihilator_add x y p q : coprimep p q ->
  annihilator x p -> annihilator y q -> annihilator (x + y) (p * q).
Proof.
move=> co ann_x ann_y r; rewrite Gauss_dvdp // mulmxDl.
apply/eqP/andP => [sum0 | [p_r q_r]]; last first.
  by move: p_r q_r; rewrite -ann_x -ann_y => /eqP -> /eqP ->; rewrite addr0.
have y0 : y *m horner_mx A r = 0.
  apply/eqP; rewrite ann_y -(Gauss_dvdpl _ (_ : coprimep q p)) 1?coprimep_sym //.
  rewrite -ann_y horner_mul; have := congr1 (mulmxr (horner_mx A p)) sum0.
  rewrite /= mul0mx mulmxDl -!horner_mul; have /eqP -> : x *m horner_mx A (r * p) == 0.
    by rewrite ann_x dvdp_mulIr.
  by rewrite add0r => ->.
by split; [rewrite -ann_x -[_ *m _]addr0 -{1}y0 sum0 | rewrite -ann_y y0].
Qed.

(* A power of an irreducible polynomial annihilates exactly when it has to.   *)
Lemma annihilator_power y r e : irreducible_poly r ->
  y *m horner_mx A (r ^+ e.+1) = 0 -> y *m horner_mx A (r ^+ e) != 0 ->
  annihilator y (r ^+ e.+1).
Proof.
move=> r_irr y0 y_neq0 q; apply/eqP/idP => [yq | /dvdpP[u ->]]; last first.
  by rewrite mulrC horner_mul y0 mul0mx.
have [-> | q0] := eqVneq q 0; first exact: dvdp0.
have [j [q' [qE co]]] := split_power r_irr q0.
have [le_j | lt_j] := leqP e.+1 j; first by rewrite qE dvdp_mulr // dvdp_exp2l.
case/negP: y_neq0; apply/eqP; rewrite -(subnKC (ltnSE lt_j)) exprD horner_mul.
suff -> : y *m horner_mx A (r ^+ j) = 0 by rewrite mul0mx.
have /Bezout_coprimepP[u] := coprimep_expl e.+1 co.
rewrite -size_poly_eq1 => /size_poly1P[c c0 uE].
have : y *m horner_mx A (r ^+ j * (u.1 * r ^+ e.+1 + u.2 * q')) = 0.
  rewrite mulrDr mulrA [_ * r ^+ e.+1]mulrC (mulrCA _ u.2) -qE [u.2 * q]mulrC.
  rewrite rmorphD mulmxDr !horner_mul.
  by rewrite y0 yq !mul0mx addr0.
by rewrite uE horner_mul horner_mx_C mul_mx_scalar => /eqP; rewrite scaler_eq0 (negbTE c0) => /eqP.
Qed.

(* Every divisor of the minimal polynomial annihilates some vector exactly.   *)
Lemma annihilator_exists p : p %| mxminpoly A ->
  classically (exists x, annihilator x p).
Proof.
have mA0 : mxminpoly A != 0 by apply/monic_neq0/mxminpoly_monic.
have [m] := ubnP (size p); elim: m p => // m IH p le_p p_mA b vector_b.
have p0 : p != 0 by apply: contraNneq mA0 => p0; rewrite p0 dvd0p in p_mA.
have [p_le1 | p_gt1] := leqP (size p) 1.
  apply: vector_b; exists 0 => q; rewrite mul0mx eqxx; apply/esym.
  apply: (dvdp_trans (_ : p %| 1)); rewrite ?dvd1p // dvdp1.
  by rewrite eqn_leq p_le1 size_poly_gt0.
apply: (irreducible_factor p_gt1) => -[r r_irr r_p].
have [[|e] [q [pE co]]] := split_power r_irr p0.
  have [r_gt1 _] := r_irr; move: r_p; rewrite pE mul1r.
  have := co; rewrite coprimep_def => + r_q; rewrite (eqp_size (dvdp_gcd_idl r_q)).
  by rewrite gtn_eqF.
have q_p : q %| p by rewrite pE dvdp_mulIr.
have r_size : (size r == 1)%N = false by case: r_irr => /gtn_eqF.
have lt_q : (size q < size p)%N.
  rewrite ltn_neqAle dvdp_leq // andbT dvdp_size_eqp //; apply/negP => /eqp_dvdr r_q.
  by move: co; rewrite coprimep_def (eqp_size (dvdp_gcd_idl _)) ?r_size // r_q.
apply: (IH q (leq_trans lt_q le_p) (dvdp_trans q_p p_mA)) => -[x ann_x].
have /dvdpP[c mAE] := p_mA; pose low := q * c * r ^+ e.
have lowE : mxminpoly A = low * r.
  by rewrite mAE pE /low exprSr !mulrA [LHS](ACl (4*1*2*3)%AC).
have low_neq0 : horner_mx A low != 0.
  apply/negP => /eqP/mxminpoly_min; have low0 : low != 0.
    by apply: contraNneq mA0 => low0; rewrite lowE low0 mul0r.
  rewrite lowE -{2}[low]mulr1 dvdp_mul2l // dvdp1 r_size; exact/negP.
have [i low_i] : exists i, row i (horner_mx A low) != 0.
  apply/existsP; apply: contraR low_neq0; rewrite negb_exists => /forallP rows0.
  by apply/eqP/row_matrixP => i; rewrite row0; apply/eqP/negbNE.
pose y := row i (horner_mx A (q * c)); have yE t : y *m horner_mx A t = row i (horner_mx A (q * c * t)).
  by rewrite -row_mul [in RHS]rmorphM.
apply: vector_b; exists (y + x); rewrite pE; apply: annihilator_add ann_x.
  exact: coprimep_expl.
apply: annihilator_power => //; last by rewrite yE.
by rewrite yE exprSr mulrA -lowE mx_root_minpoly row0.
Qed.

(* A vector that only multiples of the minimal polynomial annihilate carries  *)
(* the whole rank of the powers.                                              *)
Lemma full_rank x k : annihilator x (mxminpoly A) ->
  \rank (\matrix_(i < k) (x *m A ^+ i)) = \rank (powers_mx A k).
Proof.
move=> ann_x; have -> : \matrix_(i < k) (x *m A ^+ i) = powers_mx A k *m lin_mul_row x.
  by apply/row_matrixP => i; rewrite row_mul !rowK mul_vec_lin_row.
apply/mxrank_injP; rewrite -submx0; apply/rV_subP => v; rewrite sub_capmx.
case/andP => /submxP[u ->] /sub_kermxP; rewrite -[u *m _]vec_mxK -horner_rVpoly.
rewrite mul_vec_lin_row => /eqP; rewrite ann_x => /mxminpoly_minP ->.
by rewrite raddf0 sub0mx.
Qed.
End MaximalVector.

Lemma trmx_power (F : fieldType) n (A : 'M[F]_n.+1) i : (A ^+ i)^T = A^T ^+ i.
Proof. by elim: i => [|i IH]; rewrite ?trmx1 // exprS [_^T]trmx_mul IH exprSr. Qed.

Lemma powers_tr (F : fieldType) n (A : 'M[F]_n.+1) k :
  powers_mx A^T k = powers_mx A k *m lin_mx trmx.
Proof.
by apply/row_matrixP => i; rewrite row_mul !rowK mul_vec_lin /= trmx_power.
Qed.

Lemma krylov_tr (F : fieldType) n (A : 'M[F]_n.+1) x k :
  krylov A x k = \matrix_(i < k) (x^T *m A^T ^+ i).
Proof. by apply/row_matrixP => i; rewrite !rowK trmx_mul trmx_power. Qed.

(* No vector carries more than the rank of the powers.                        *)
Lemma krylov_powers (F : fieldType) n (A : 'M[F]_n.+1) x k :
  (\rank (krylov A x k) <= \rank (powers_mx A k))%N.
Proof.
rewrite krylov_tr (_ : \matrix_i _ = powers_mx A^T k *m lin_mul_row x^T).
  by rewrite powers_tr -mulmxA mxrankM_maxl.
by apply/row_matrixP => i; rewrite row_mul !rowK mul_vec_lin_row.
Qed.

(** Over any field a bound on the Krylov rank of every vector is a bound on the
    rank of the powers (and there is a vector that attains it). *)
Theorem maximal_vector (F : fieldType) n (A : 'M[F]_n.+1) k m :
  (forall x, \rank (krylov A x k) <= m)%N -> (\rank (powers_mx A k) <= m)%N.
Proof.
move=> bound; apply: (annihilator_exists (dvdpp (mxminpoly A^T))) => -[x /full_rank full].
apply: leq_trans (bound x^T); rewrite krylov_tr trmxK full.
by rewrite -{1}[A]trmxK powers_tr mxrankM_maxl.
Qed.

(** Theorem: linear MHA with an output projection needs as many heads for the bank
    as the rank of I, A, ..., A^(k-1), whatever its weights; over a field with at
    least three elements. *)
Theorem projected_heads_bound (F : fieldType) n d dk dv k (T : finType) (A : 'M[F]_n.+1)
    (WQ WK : T -> 'M[F]_(d.+1 + n.+1, dk))
    (WV : T -> 'M[F]_(d.+1 + n.+1, dv)) (WO : T -> 'M[F]_(dv, \sum_(i < k) d.+1)) :
  three_elements F ->
  (forall X, projected_mha WQ WK WV WO (with_code X) = bank A X k) ->
  (\rank (powers_mx A k) <= #|T|)%N.
Proof. by move=> F_three target; apply: maximal_vector => x; apply: krylov_bound target. Qed.
