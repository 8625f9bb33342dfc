(* Theorem 2 (its full form is Theorem 5), first half: IHA contains MHA.      *)
(*                                                                            *)
(* All P pseudo-heads of a head are copies of the head of MHA, and the        *)
(* collapse reads any of them (or their mean, or any combination whose        *)
(* coefficients sum to one).  This is MHA without a mask and with the         *)
(* token-causal mask, for every P >= 1.  With the flat-causal mask it is MHA  *)
(* if the collapse reads the last pseudo-head; Theorem2_Flat.v treats the     *)
(* others.                                                                    *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * The number of parameters *)

(** IHA has Q + 4 H^2 P parameters, where Q is the number of parameters of MHA
    with the same base weights: 3 H^2 P mixing coefficients and the H x HP
    collapse. *)
Theorem parameter_count (R : comRingType) H P D dk dv (W : weights R H P D dk dv) :
  parameters W = (mha_parameters (w_q W) (w_k W) (w_v W) + 4 * H ^ 2 * P)%N /\
  (4 * H ^ 2 * P = 3 * (H * H * P) + H * (H * P))%N.
Proof.
have count : (4 * H ^ 2 * P = 3 * (H * H * P) + H * (H * P))%N.
  by rewrite -[(H ^ 2)%N]mulnn -mulnA [(H * (H * P))%N]mulnA -mulSnr.
split=> //; rewrite count /parameters /mha_parameters card_ord.
by rewrite !mulSn mul0n addn0 [(H * (H * P))%N]mulnA !addnA.
Qed.

(* ------------------------------------------------------------------------ *)
(** * Pseudo-heads made of their own head only *)

Section OwnHead.
Variables (R : comRingType) (H P N D dk dv : nat).
Variables (WQ WK : 'I_H -> 'M[R]_(D, dk)) (WV : 'I_H -> 'M[R]_(D, dv)).
Implicit Types (X : 'M[R]_(N, D)) (h : 'I_H) (s r : 'I_P -> R).

(* Pseudo-head j of head h takes s j times the projection of head h.          *)
Definition own s (m h : 'I_H) (j : 'I_P) : R := (m == h)%:R * s j.

(* Query, key and value factors of the pseudo-heads; output h is the          *)
(* combination r of the pseudo-outputs of head h.                             *)
Definition own_heads sq sk sv r : weights R H P D dk dv :=
  Weights WQ WK WV (own sq) (own sk) (own sv) (fun h h' j => (h' == h)%:R * r j).

(* Two collapses: read pseudo-head j0.                                        *)
Definition pick (j0 : 'I_P) : 'I_P -> R := fun j => (j == j0)%:R.

Lemma pseudo_own s e (w : 'I_H -> 'M[R]_(D, e)) X h j :
  pseudo (own s) w X h j = s j *: (X *m w h).
Proof.
rewrite /pseudo (bigD1 h) //= big1 ?addr0 => [|m /negbTE ne]; rewrite /own.
  by rewrite eqxx mul1r.
by rewrite ne mul0r scale0r.
Qed.

Lemma iha_own act sq sk sv r X h :
  iha act (own_heads sq sk sv r) X h =
  \sum_j r j *: pseudo_output act (own_heads sq sk sv r) X h j.
Proof.
rewrite /iha (bigD1 h) //= eqxx [X in _ + X]big1 ?addr0 => [|h' /negbTE ne].
  by apply: eq_bigr => j _; rewrite mul1r.
by rewrite big1 // => j _; rewrite ne mul0r scale0r.
Qed.

Lemma sum_pick (V : lmodType R) j0 (B : 'I_P -> V) : \sum_j pick j0 j *: B j = B j0.
Proof.
rewrite (bigD1 j0) //= /pick eqxx scale1r big1 ?addr0 // => j /negbTE ne.
by rewrite ne scale0r.
Qed.

Lemma iha_own_pick act sq sk sv j0 X h :
  iha act (own_heads sq sk sv (pick j0)) X h =
  pseudo_output act (own_heads sq sk sv (pick j0)) X h j0.
Proof. by rewrite iha_own sum_pick. Qed.

(* Every pseudo-head is a copy of its head.                                   *)
Definition copies r : weights R H P D dk dv :=
  own_heads (fun=> 1) (fun=> 1) (fun=> 1) r.
End OwnHead.

(* ------------------------------------------------------------------------ *)
(** * Weightings that share a weight evenly among copies *)

(* Repeating every position P times divides its weight by P.                  *)
Definition shares_evenly (F : fieldType) (w : weighting F) :=
  forall P (T : finType) (A : pred T) s (u : 'I_P * T),
  w [finType of 'I_P * T] (fun u => A u.2) (fun u => s u.2) u = w T A s u.2 / P%:R.

Lemma sum_copies (V : zmodType) P (T : finType) (A : pred T) (f : T -> V) :
  \sum_(u : 'I_P * T | A u.2) f u.2 = (\sum_(t | A t) f t) *+ P.
Proof.
rewrite -(pair_big_dep xpredT (fun _ t => A t) (fun _ t => f t)) /=.
by rewrite sumr_const card_ord.
Qed.

(* A normalised average is a quotient of two sums.                            *)
Lemma normalised_average (F : fieldType) (e : F -> F) (T : finType) (A : pred T) s (v : T -> F) :
  \sum_t normalised e A s t * v t =
  (\sum_(t | A t) e (s t) * v t) / (\sum_(t | A t) e (s t)).
Proof.
rewrite mulr_suml [RHS]big_mkcond; apply: eq_bigr => t _; rewrite /normalised.
by case: ifP => _; rewrite ?mul0r // mulrAC.
Qed.

Lemma normalised_shares (F : realFieldType) (e : F -> F) : shares_evenly (normalised e).
Proof.
move=> P T A s u; rewrite /normalised; case: ifP => _; last by rewrite mul0r.
by rewrite (sum_copies P A (e \o s)) -[X in _ / X = _]mulr_natr invfM mulrA.
Qed.

Lemma hard_shares (F : realFieldType) : shares_evenly (@hard F).
Proof.
move=> P T A s u.
have maxE v : maximal (fun v : 'I_P * T => A v.2) (fun v => s v.2) v = maximal A s v.2.
  rewrite /maximal; congr (_ && _); apply/forallP/forallP => max_v t.
    exact: (max_v (v.1, t)).
  exact: max_v.
rewrite /hard maxE; case: ifP => _; last by rewrite mul0r.
rewrite -invfM -natrM; congr (_%:R^-1); rewrite -!sum1_card.
rewrite (eq_bigl (fun v : 'I_P * T => maximal A s v.2)) => [|v]; last by rewrite !inE maxE.
rewrite -(pair_big_dep xpredT (fun _ t => maximal A s t) (fun _ t => 1%N)) /=.
by rewrite [LHS]sum_nat_const card_ord mulnC.
Qed.

(* ------------------------------------------------------------------------ *)
(** * Inclusion *)

Section Inclusion.
Variables (F : realFieldType) (H P N D dk dv : nat).
Variables (WQ WK : 'I_H -> 'M[F]_(D, dk)) (WV : 'I_H -> 'M[F]_(D, dv)).
Implicit Types (X : 'M[F]_(N, D)) (h : 'I_H) (r : 'I_P -> F).

Section Weighting.
Variable w : weighting F.
Hypotheses (w_eq : equivariant w) (w_even : shares_evenly w).

(* Row (j, n) of IHA is row n of MHA with the same base weights if pseudo-query *)
(* j and all pseudo-keys are copies, the pseudo-values are copies on average, *)
(* and the virtual token (j, n) sees all the pseudo-heads of a token or none. *)
Lemma mean_copies_output (W : weights F H P D dk dv) (mask : rel ('I_P * 'I_N))
    (visible : rel 'I_N) X h j n c :
  (forall m, alpha_q W m h j = (m == h)%:R) ->
  (forall m j', alpha_k W m h j' = (m == h)%:R) ->
  (forall m, \sum_j' alpha_v W m h j' = (m == h)%:R * P%:R) ->
  (forall u, mask (j, n) u = visible n u.2) ->
  pseudo_output (on_stack w mask) W X h j n c =
  mha (rowwise w visible id) (w_q W) (w_k W) (w_v W) X h n c.
Proof.
move=> q_copy k_copy v_mean maskE; rewrite pseudo_outputE // mhaE.
set S := _ *m _; pose g n' := w (visible n) (S n) n' / P%:R.
transitivity (\sum_(u : 'I_P * 'I_N) g u.2 * pseudo_v W X h u.1 u.2 c).
  apply: eq_bigr => u _; rewrite /g -w_even; congr (_ * _); apply: equivariant_ext => // u'.
  rewrite /score [pseudo_q _ _ _ _](@pseudo_pick _ _ _ _ _ _ _ _ _ _ _ h) //.
  by rewrite [pseudo_k _ _ _ _](@pseudo_pick _ _ _ _ _ _ _ _ _ _ _ h).
rewrite -(pair_bigA _ (fun j' n' => g n' * pseudo_v W X h j' n' c)) exchange_big /=.
apply: eq_bigr => n' _; rewrite -mulr_sumr /g -mulrA; congr (_ * _).
have P_neq0 : P%:R != 0 :> F by rewrite pnatr_eq0 -lt0n (leq_ltn_trans (leq0n j)).
apply: (mulfI P_neq0); rewrite mulVKf //.
have /(congr1 (fun O : 'M_(_, _) => O n' c)) : \sum_j' pseudo_v W X h j' = P%:R *: (X *m w_v W h).
  rewrite /pseudo_v /pseudo exchange_big /= (bigD1 h) //= -scaler_suml v_mean eqxx mul1r.
  by rewrite big1 ?addr0 // => m /negbTE ne; rewrite -scaler_suml v_mean ne mul0r scale0r.
by rewrite summxE [RHS]mxE.
Qed.

Lemma copies_output r (mask : rel ('I_P * 'I_N)) (visible : rel 'I_N) X h j n c :
  (forall u, mask (j, n) u = visible n u.2) ->
  pseudo_output (on_stack w mask) (copies WQ WK WV r) X h j n c =
  mha (rowwise w visible id) WQ WK WV X h n c.
Proof.
move=> maskE; apply: mean_copies_output => // [m|m j'|m]; rewrite /= /own ?mulr1 //.
by rewrite sumr_const card_ord mulr_natr ?mulr1.
Qed.

(* With a mask on tokens every pseudo-output is MHA.                          *)
Lemma copies_token_mask r (visible : rel 'I_N) X h :
  iha (on_stack w (fun p u => visible p.2 u.2)) (copies WQ WK WV r) X h =
  (\sum_j r j) *: mha (rowwise w visible id) WQ WK WV X h.
Proof.
rewrite iha_own scaler_suml; apply: eq_bigr => j _; congr (_ *: _).
by apply/matrixP => n c; apply: copies_output.
Qed.

(** Inclusion, every P >= 1 and every mask on tokens: with copies, a collapse
    whose coefficients on the head's own pseudo-heads sum to one gives MHA,
    head by head. *)
Theorem inclusion_token_mask r (visible : rel 'I_N) X h :
  \sum_j r j = 1 ->
  iha (on_stack w (fun p u => visible p.2 u.2)) (copies WQ WK WV r) X h =
  mha (rowwise w visible id) WQ WK WV X h.
Proof. by move=> r1; rewrite copies_token_mask r1 scale1r. Qed.

(* Such a collapse: reading one pseudo-head, whichever; the mean of all.      *)
Lemma sum_pick1 (j0 : 'I_P) : \sum_j pick F j0 j = 1.
Proof. by rewrite (bigD1 j0) //= /pick eqxx big1 ?addr0 // => j /negbTE ->. Qed.

Definition mean : 'I_P -> F := fun=> P%:R^-1.

Lemma sum_mean : (0 < P)%N -> \sum_j mean j = 1.
Proof.
by move=> P_gt0; rewrite sumr_const card_ord -[LHS]mulr_natr mulVf // pnatr_eq0 -lt0n.
Qed.
End Weighting.

(** Theorem 2, inclusion, attention without a mask: for every score function e
    whose values are divided by their row sum (softmax is the instance
    e(s) = exp(s / sqrt dk)), every P and every pseudo-head j0 that the
    collapse reads, IHA is MHA.  That e is positive is not needed: a row whose
    sum is zero gives zero on both sides. *)
Theorem inclusion_no_mask (e : F -> F) (j0 : 'I_P) X h :
  iha (on_stack (normalised e) no_mask) (copies WQ WK WV (pick F j0)) X h =
  mha (rowwise (normalised e) no_mask id) WQ WK WV X h.
Proof.
apply: (inclusion_token_mask _ _ no_mask); last exact: sum_pick1.
- exact: normalised_equivariant.
- exact: normalised_shares.
Qed.

(** Theorem 2, inclusion, token-causal mask. *)
Theorem inclusion_token_causal (e : F -> F) (j0 : 'I_P) X h :
  iha (on_stack (normalised e) token_causal) (copies WQ WK WV (pick F j0)) X h =
  mha (rowwise (normalised e) causal id) WQ WK WV X h.
Proof.
apply: (inclusion_token_mask _ _ causal); last exact: sum_pick1.
- exact: normalised_equivariant.
- exact: normalised_shares.
Qed.

(** Inclusion without a mask and with the token-causal one when the collapse
    takes the mean of the P pseudo-heads. *)
Theorem inclusion_mean (e : F -> F) X h :
  (0 < P)%N ->
  iha (on_stack (normalised e) no_mask) (copies WQ WK WV mean) X h =
  mha (rowwise (normalised e) no_mask id) WQ WK WV X h /\
  iha (on_stack (normalised e) token_causal) (copies WQ WK WV mean) X h =
  mha (rowwise (normalised e) causal id) WQ WK WV X h.
Proof.
move=> P_gt0; have [w_eq w_even] := (normalised_equivariant e, normalised_shares e).
by split; [apply: (inclusion_token_mask _ _ no_mask) | apply: (inclusion_token_mask _ _ causal)];
  rewrite ?sum_mean.
Qed.

(** Inclusion for hard attention, any mask on tokens. *)
Theorem inclusion_hard (visible : rel 'I_N) (j0 : 'I_P) X h :
  iha (on_stack (@hard F) (fun p u => visible p.2 u.2)) (copies WQ WK WV (pick F j0)) X h =
  mha (rowwise (@hard F) visible id) WQ WK WV X h.
Proof.
apply: inclusion_token_mask; last exact: sum_pick1.
- exact: hard_equivariant.
- exact: hard_shares.
Qed.
End Inclusion.

(* ------------------------------------------------------------------------ *)
(** * The flat-causal mask: the last pseudo-head *)

Section FlatLast.
Variables (F : realFieldType) (H P N D dk dv : nat).
Variables (WQ WK : 'I_H -> 'M[F]_(D, dk)) (WV : 'I_H -> 'M[F]_(D, dv)).
Implicit Types (X : 'M[F]_(N, D)) (h : 'I_H).

(* What virtual token (j, n) sees under the flat mask.                        *)
Lemma flat_sees (j j' : 'I_P) (n n' : 'I_N) :
  flat_causal (j, n) (j', n') = (n' < n)%N || (n' == n) && (j' <= j)%N.
Proof.
rewrite /flat_causal /flat_position /= -val_eqE /=.
have before (m m' : nat) (i i' : 'I_P) : (m' < m)%N -> (m' * P + i' < m * P + i)%N.
  move=> lt_m; apply: (@leq_trans (m'.+1 * P)).
    by rewrite mulSn [X in (_ < X)%N]addnC ltn_add2l.
  by apply: leq_trans (leq_addr _ _); rewrite leq_mul2r lt_m orbT.
case: ltngtP => [lt_n | gt_n | ->] /=.
- by rewrite ltnW // before.
- by apply/negbTE; rewrite -ltnNge before.
- by rewrite leq_add2l.
Qed.

(* Windows of W tokens, and of the W P virtual tokens up to the own one.      *)
Definition window W : rel 'I_N := fun n n' => (n' <= n < n' + W)%N.
Definition flat_window W : rel ('I_P * 'I_N) :=
  fun p u => (flat_position u <= flat_position p < flat_position u + W * P)%N.

Section Last.
Variable last : 'I_P.
Hypothesis lastP : last.+1 = P.

Lemma flat_causal_last (n : 'I_N) u : flat_causal (last, n) u = causal n u.2.
Proof.
case: u => j n'; rewrite flat_sees /causal [RHS]leq_eqVlt orbC; congr (_ || _).
by rewrite -ltnS lastP ltn_ord andbT.
Qed.

Lemma flat_window_last W (n : 'I_N) u : flat_window W (last, n) u = window W n u.2.
Proof.
rewrite /flat_window -[X in X && _]/(flat_causal (last, n) u) flat_causal_last.
congr (_ && _); case: u => j n'; rewrite /flat_position /=.
have P_gt0 : (0 < P)%N by rewrite -lastP.
rewrite -addnS lastP addnC -mulSn addnAC -mulnDl -leq_divRL //.
by rewrite divnMDl // divn_small ?addn0.
Qed.

(** Flat-causal mask (the causal kernel on interleaved rows): IHA is MHA if the
    collapse reads the last pseudo-head. *)
Theorem inclusion_flat_last (e : F -> F) X h :
  iha (on_stack (normalised e) flat_causal) (copies WQ WK WV (pick F last)) X h =
  mha (rowwise (normalised e) causal id) WQ WK WV X h.
Proof.
rewrite iha_own_pick; apply/matrixP => n c; apply: copies_output => [||u].
- exact: normalised_equivariant.
- exact: normalised_shares.
- exact: flat_causal_last.
Qed.

(** MHA needs less than copies: queries copied in the last pseudo-head, which the
    collapse reads, all keys copied, values copied on average; the other
    pseudo-queries are free.  This gives MHA without a mask and under both
    causal masks, and lets the pseudo-heads differ. *)
Theorem inclusion_mean_values (e : F -> F) (W : weights F H P D dk dv) X :
  (forall m h, alpha_q W m h last = (m == h)%:R) ->
  (forall m h j, alpha_k W m h j = (m == h)%:R) ->
  (forall m h, \sum_j alpha_v W m h j = (m == h)%:R * P%:R) ->
  (forall h h' j, collapse W h h' j = ((h' == h) && (j == last))%:R) ->
  let head visible := mha (rowwise (normalised e) visible id) (w_q W) (w_k W) (w_v W) X in
  [/\ iha (on_stack (normalised e) no_mask) W X =1 head no_mask,
      iha (on_stack (normalised e) token_causal) W X =1 head causal &
      iha (on_stack (normalised e) flat_causal) W X =1 head causal].
Proof.
move=> q_copy k_copy v_mean reads head.
have [w_eq w_even] := (normalised_equivariant e, normalised_shares e).
have out mask visible h : (forall n u, mask (last, n) u = visible n u.2) ->
    iha (on_stack (normalised e) mask) W X h = head visible h.
  move=> maskE; rewrite (iha_pick _ _ (reads h)); apply/matrixP => n c.
  exact: mean_copies_output.
by split=> h; apply: out => // n u; apply: flat_causal_last.
Qed.

(** The copies with the last pseudo-head read are MHA under a flat sliding window
    of whole tokens, too. *)
Theorem inclusion_window_last (e : F -> F) W X h :
  iha (on_stack (normalised e) (flat_window W)) (copies WQ WK WV (pick F last)) X h =
  mha (rowwise (normalised e) (window W) id) WQ WK WV X h.
Proof.
rewrite iha_own_pick; apply/matrixP => n c; apply: copies_output => [||u].
- exact: normalised_equivariant.
- exact: normalised_shares.
- exact: flat_window_last.
Qed.
End Last.
End FlatLast.
