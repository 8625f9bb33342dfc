(* Theorem 2 under the flat-causal mask, when the collapse reads a pseudo-head *)
(* that is not the last: the copies are not MHA.  The exact error, when it is *)
(* zero, and counterexamples.                                                 *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem2_Inclusion.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * Sums over what a virtual token sees *)

(* Under the flat mask a past token counts P times, the own token j + 1 times. *)
Lemma flat_sum (F : ringType) P N (f : 'I_N -> F) (j : 'I_P) n :
  \sum_(u | flat_causal (j, n) u) f u.2 =
  P%:R * (\sum_(n' : 'I_N | (n' < n)%N) f n') + j.+1%:R * f n.
Proof.
pose G (n' : 'I_N) := \sum_(j' | flat_causal (j, n) (j', n')) f n'.
transitivity (\sum_n' G n').
  rewrite /G (exchange_big_dep xpredT) //= [RHS](pair_big_dep xpredT
    (fun j' n' => flat_causal (j, n) (j', n')) (fun _ n' => f n')) /=.
  by apply: eq_big => [[]|[]].
have own : G n = j.+1%:R * f n.
  rewrite /G; under eq_bigl do rewrite flat_sees ltnn eqxx /= -ltnS.
  by rewrite -(big_ord_widen P (fun=> f n)) // sumr_const card_ord mulr_natl.
rewrite (bigD1 n) //= own addrC; congr (_ + _); rewrite mulr_sumr.
rewrite big_mkcond [RHS]big_mkcond; apply: eq_bigr => n' _.
rewrite /G; under eq_bigl do rewrite flat_sees.
case: ltngtP => [lt_n|gt_n|/val_inj ->] /=; rewrite ?eqxx //.
  by rewrite -val_eqE /= ltn_eqF // sumr_const card_ord mulr_natl.
by rewrite big_pred0 ?if_same // => j'; rewrite -val_eqE /= gtn_eqF.
Qed.

Lemma missing_copies_sum (R : comRingType) (P J x y : R) :
  P * (x + y) - (P - J) * y = P * x + J * y.
Proof. by rewrite mulrDr mulrBl opprB -addrA [P * y + _]addrC subrK. Qed.

(* The algebra of the error: a mean of u and v with K copies of v missing.    *)
Lemma missing_copies (F : fieldType) (P K p u v : F) : P - K * p != 0 ->
  (P * ((1 - p) * u + p * v) - K * p * v) / (P - K * p) - ((1 - p) * u + p * v) =
  - (K * p * (1 - p) / (P - K * p)) * (v - u).
Proof.
set y := _ * u + _ => D_neq0.
have yv : y - v = - ((1 - p) * (v - u)).
  by rewrite /y mulrBr opprB -addrA; congr (_ + _); rewrite mulrBl mul1r opprB.
apply: (mulIf D_neq0).
have -> : - (K * p * (1 - p) / (P - K * p)) * (v - u) * (P - K * p) = K * p * (y - v).
  by rewrite mulNr mulNr mulrAC mulfVK // -[_ * (v - u)]mulrA -mulrN -yv.
rewrite [LHS]mulrBl mulfVK // mulrBr [y * P]mulrC opprB addrC addrA subrK.
by rewrite [y * _]mulrC -mulrBr.
Qed.

Section FlatError.
Variables (F : realFieldType) (e : F -> F) (H P N D dk dv : nat).
Hypothesis e_gt0 : forall s, 0 < e s.
Variables (WQ WK : 'I_H -> 'M[F]_(D, dk)) (WV : 'I_H -> 'M[F]_(D, dv)).
Variables (X : 'M[F]_(N, D)) (h : 'I_H).

(* The tokens before n; the mean over them (the average u); the weight of a   *)
(* token on itself in causal MHA (p).                                         *)
Definition earlier : rel 'I_N := fun n n' => (n' < n)%N.
Definition earlier_mean : 'M[F]_(N, dv) := mha (rowwise (normalised e) earlier id) WQ WK WV X h.
Definition own_weight (n : 'I_N) : F :=
  rowwise (normalised e) causal id ((X *m WQ h) *m (X *m WK h)^T) n n.

Definition causal_mha : 'M[F]_(N, dv) := mha (rowwise (normalised e) causal id) WQ WK WV X h.
Definition flat_iha (j : 'I_P) : 'M[F]_(N, dv) :=
  iha (on_stack (normalised e) flat_causal) (copies WQ WK WV (pick F j)) X h.

(* The e of the own score and the sum of e over the earlier scores.           *)
Definition own_e n := e (((X *m WQ h) *m (X *m WK h)^T) n n).
Definition past_e n := \sum_(n' | earlier n n') e (((X *m WQ h) *m (X *m WK h)^T) n n').

(* Row n of the flat layer that reads pseudo-head j, as one quotient.         *)
Lemma flat_ihaE (j : 'I_P) n c :
  flat_iha j n c =
  (P%:R * (\sum_(n' | earlier n n') e (((X *m WQ h) *m (X *m WK h)^T) n n') * (X *m WV h) n' c)
   + j.+1%:R * (own_e n * (X *m WV h) n c)) / (P%:R * past_e n + j.+1%:R * own_e n).
Proof.
set S := _ *m _; rewrite /flat_iha iha_own_pick pseudo_outputE; last exact: normalised_equivariant.
have own1 e' (W : 'I_H -> 'M[F]_(D, e')) (i : 'I_P) : pseudo (own (fun=> 1)) W X h i = X *m W h.
  by rewrite pseudo_own scale1r.
transitivity (\sum_u normalised e (flat_causal (j, n)) (fun u => S n u.2) u * (X *m WV h) u.2 c).
  apply: eq_bigr => u _; rewrite [pseudo_v _ _ _ _]own1; congr (_ * _).
  apply: (equivariant_ext (normalised_equivariant e)) => // u'.
  by rewrite /score [pseudo_q _ _ _ _]own1 [pseudo_k _ _ _ _]own1.
rewrite normalised_average (flat_sum (fun n' => e (S n n') * (X *m WV h) n' c)).
by rewrite (flat_sum (fun n' => e (S n n'))).
Qed.

Let own_e_gt0 n : 0 < own_e n. Proof. exact: e_gt0. Qed.
Let past_e_ge0 n : 0 <= past_e n. Proof. by apply: sumr_ge0 => n' _; apply: ltW. Qed.
Let total_gt0 n : 0 < past_e n + own_e n. Proof. exact: ltr_paddl. Qed.

Lemma causal_split (V : zmodType) (f : 'I_N -> V) n :
  \sum_(n' | causal n n') f n' = \sum_(n' | earlier n n') f n' + f n.
Proof.
rewrite (bigD1 n) /causal ?leqnn //= addrC; congr (_ + _); apply: eq_bigl => n'.
by rewrite /earlier ltn_neqAle andbC.
Qed.

Lemma own_weightE n : own_weight n = own_e n / (past_e n + own_e n).
Proof.
rewrite /own_weight mxE /normalised {1}/causal leqnn; congr (_ / _).
exact: causal_split.
Qed.

Lemma other_weight n : 1 - own_weight n = past_e n / (past_e n + own_e n).
Proof.
by rewrite own_weightE -(divff (lt0r_neq0 (total_gt0 n))) -mulrBl addrK.
Qed.

Lemma earlier_sum n c :
  \sum_(n' | earlier n n') e (((X *m WQ h) *m (X *m WK h)^T) n n') * (X *m WV h) n' c =
  past_e n * earlier_mean n c.
Proof.
rewrite /earlier_mean mhaE normalised_average; set S := _ *m _.
case: (pickP (earlier n)) => [n' lt_n | none]; last first.
  by rewrite /past_e !big_pred0 // mul0r.
by rewrite mulrC divfK // lt0r_neq0 //; apply: (@row_sum_gt0 _ _ _ _ _ n').
Qed.

(* Causal MHA: the own value weighs p, the mean of the earlier ones 1 - p.    *)
Lemma causal_mhaE n c :
  causal_mha n c = (1 - own_weight n) * earlier_mean n c + own_weight n * (X *m WV h) n c.
Proof.
rewrite /causal_mha mhaE normalised_average !causal_split earlier_sum mulrDl.
by rewrite other_weight own_weightE mulrAC [own_e n * _ / _]mulrAC.
Qed.

(* P - (P - J) p, where J = j + 1, is the row sum of the flat layer, divided   *)
(* by that of MHA.                                                            *)
Lemma flat_row_sum (j : 'I_P) n :
  (P%:R - (P%:R - j.+1%:R) * own_weight n) * (past_e n + own_e n) = P%:R * past_e n + j.+1%:R * own_e n.
Proof.
have T_neq0 := lt0r_neq0 (total_gt0 n); rewrite mulrBl -mulrA own_weightE mulfVK //.
exact: missing_copies_sum.
Qed.

Lemma flat_row_sum_gt0 (j : 'I_P) n : 0 < P%:R - (P%:R - j.+1%:R) * own_weight n.
Proof.
rewrite -(pmulr_lgt0 _ (total_gt0 n)) flat_row_sum ltr_paddl //.
  exact: mulr_ge0 (ler0n _ _) (past_e_ge0 n).
exact: mulr_gt0 (ltr0Sn _ _) (own_e_gt0 n).
Qed.

(** Flat-causal mask, the collapse reads the J-th of P pseudo-heads (J = j + 1).
    With p the weight that causal MHA gives a token itself, v its own value and
    u the mean over the earlier tokens,
      IHA - MHA = - (P - J) p (1 - p) / (P - (P - J) p) (v - u). *)
Theorem flat_causal_error (j : 'I_P) n c :
  flat_iha j n c - causal_mha n c =
  - ((P%:R - j.+1%:R) * own_weight n * (1 - own_weight n)
     / (P%:R - (P%:R - j.+1%:R) * own_weight n)) * ((X *m WV h) n c - earlier_mean n c).
Proof.
have T_neq0 := lt0r_neq0 (total_gt0 n); have D_neq0 := lt0r_neq0 (flat_row_sum_gt0 j n).
rewrite -missing_copies // -causal_mhaE; congr (_ - _).
rewrite flat_ihaE earlier_sum -flat_row_sum invfM mulrCA mulrC; congr (_ / _).
have scaled x y : x / (past_e n + own_e n) * y * (past_e n + own_e n) = x * y by rewrite mulrAC mulfVK.
apply: (mulIf T_neq0); rewrite mulfVK // [RHS]mulrBl -!mulrA.
have -> : causal_mha n c * (past_e n + own_e n) = past_e n * earlier_mean n c + own_e n * (X *m WV h) n c.
  by rewrite causal_mhaE other_weight own_weightE mulrDl !scaled.
by rewrite [own_weight n * _]mulrA own_weightE scaled missing_copies_sum.
Qed.

Let past_e_gt0 (n : 'I_N) : n != 0%N :> nat -> 0 < past_e n.
Proof.
rewrite -lt0n => n_gt0; have N_gt0 := leq_ltn_trans (leq0n n) (ltn_ord n).
exact: (@row_sum_gt0 _ _ _ _ _ (Ordinal N_gt0)).
Qed.

(** So reading an earlier pseudo-head gives MHA at token n exactly when n is the
    first token or its value happens to be the mean of the earlier ones. *)
Corollary flat_causal_exact (j : 'I_P) n c :
  (flat_iha j n c == causal_mha n c) =
  [|| j.+1 == P, n == 0%N :> nat | (X *m WV h) n c == earlier_mean n c].
Proof.
have D_neq0 := lt0r_neq0 (flat_row_sum_gt0 j n); have T_neq0 := lt0r_neq0 (total_gt0 n).
have p_neq0 : own_weight n != 0 by rewrite own_weightE mulf_neq0 ?invr_neq0 // lt0r_neq0.
rewrite -subr_eq0 flat_causal_error mulf_eq0 oppr_eq0 subr_eq0.
rewrite mulf_eq0 invr_eq0 (negbTE D_neq0) orbF mulf_eq0 mulf_eq0 (negbTE p_neq0) orbF.
rewrite subr_eq0 eqr_nat eq_sym orbA other_weight mulf_eq0 invr_eq0 (negbTE T_neq0) orbF.
congr (_ || _ || _); apply/idP/idP => [|/eqP n0].
  by apply: contraLR => /past_e_gt0 /lt0r_neq0.
by rewrite /past_e big_pred0 // => n'; rewrite /earlier n0.
Qed.
End FlatError.

(* ------------------------------------------------------------------------ *)
(** * A counterexample for every earlier pseudo-head *)

Section Counterexample.
Variables (F : realFieldType) (e : F -> F) (P : nat) (j : 'I_P).
Hypothesis e_gt0 : forall s, 0 < e s.

(* Two tokens 0 and 1 with one feature, one head, all base weights one.       *)
Definition zero_one : 'M[F]_(2, 1) := \matrix_(n, c) n%:R.
Definition unit_weight : 'I_1 -> 'M[F]_1 := fun=> 1%:M.

Let score_entry n n' :
  ((zero_one *m unit_weight 0) *m (zero_one *m unit_weight 0)^T) n n' = (n * n')%:R.
Proof. by rewrite !mulmx1 mxE big_ord1 !mxE natrM. Qed.
Let value_entry n c : (zero_one *m unit_weight 0) n c = n%:R.
Proof. by rewrite mulmx1 mxE. Qed.

Lemma counterexample_mha :
  mha (rowwise (normalised e) causal id) unit_weight unit_weight unit_weight zero_one 0 1 0 =
  e 1 / (e 0 + e 1).
Proof.
rewrite mhaE normalised_average big_mkcond [X in _ / X]big_mkcond !big_ord_recl !big_ord0 /=.
by rewrite !score_entry !value_entry /= mulr0 add0r !addr0 mulr1.
Qed.

Lemma counterexample_iha :
  iha (on_stack (normalised e) flat_causal)
    (copies unit_weight unit_weight unit_weight (pick F j)) zero_one 0 1 0 =
  (j.+1%:R * e 1) / (P%:R * e 0 + j.+1%:R * e 1).
Proof.
rewrite -[LHS]/(flat_iha _ _ _ _ _ _ _ _ _) flat_ihaE /own_e /past_e.
rewrite big_mkcond [X in _ / (_ * X + _)]big_mkcond !big_ord_recl !big_ord0 /= !score_entry !value_entry.
by rewrite /= mulr0 !addr0 mulr0 add0r mulr1.
Qed.

(** With the flat-causal mask and any pseudo-head but the last, the copies are
    not MHA, whatever the positive score function: two tokens suffice. *)
Theorem flat_causal_fails : j.+1 != P ->
  iha (on_stack (normalised e) flat_causal)
    (copies unit_weight unit_weight unit_weight (pick F j)) zero_one 0 1 0 !=
  mha (rowwise (normalised e) causal id) unit_weight unit_weight unit_weight zero_one 0 1 0.
Proof.
move=> j_earlier; rewrite -[iha _ _ _ _ _ _]/(flat_iha _ _ _ _ _ _ _ _ _).
rewrite -/(causal_mha _ _ _ _ _ _) flat_causal_exact // (negbTE j_earlier) /=.
rewrite value_entry /earlier_mean mhaE normalised_average.
rewrite [X in X / _]big1 ?mul0r ?oner_eq0 // => n'; rewrite /earlier ltnS leqn0.
by rewrite value_entry => /eqP ->; rewrite mulr0.
Qed.
End Counterexample.

(** The smallest instance, over the rationals: P = 2, N = 2, H = 1, the positive
    score function e(s) = 1 + s^2, the first pseudo-head read.  MHA gives 2/3
    at the second token, the flat layer 1/2. *)
Theorem flat_causal_fails_rat (e := fun s : rat => 1 + s ^+ 2)
    (one := unit_weight [realFieldType of rat]) (X := zero_one [realFieldType of rat]) :
  [/\ forall s, 0 < e s,
      mha (rowwise (normalised e) causal id) one one one X 0 1 0 = 2%:R / 3%:R,
      iha (on_stack (normalised e) flat_causal)
        (copies one one one (pick _ (0 : 'I_2))) X 0 1 0 = 1 / 2%:R &
      iha (on_stack (normalised e) flat_causal)
        (copies one one one (pick _ (1 : 'I_2))) X 0 1 0 = 2%:R / 3%:R].
Proof.
split.
- by move=> s; rewrite /e ltr_paddr // sqr_ge0.
- by rewrite counterexample_mha.
- by rewrite counterexample_iha.
- by rewrite counterexample_iha.
Qed.
