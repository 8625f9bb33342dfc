(* The layer: multi-head attention (MHA) and Interleaved Head Attention (IHA, *)
(* Algorithm 1), over any commutative ring, with the activation a parameter.  *)
(*                                                                            *)
(* Indices count from 0.  N tokens, D input columns, H heads, P pseudo-heads, *)
(* dk columns of a query or key, dv columns of a value.  Mixing is indexed    *)
(* [source, head, pseudo], collapse [out, head, pseudo].                      *)
From mathcomp Require Import all_ssreflect all_algebra.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * One attention head *)

(* act turns the n x n matrix of scores into the n x n matrix of weights.     *)
Definition attention (R : comRingType) n dk dv (act : 'M[R]_n -> 'M[R]_n)
    (q k : 'M[R]_(n, dk)) (v : 'M[R]_(n, dv)) : 'M[R]_(n, dv) :=
  act (q *m k^T) *m v.

(* Head h of MHA; the heads may be indexed by any type.                       *)
Definition mha (R : comRingType) (T : Type) N D dk dv
    (act : 'M[R]_N -> 'M[R]_N) (WQ WK : T -> 'M[R]_(D, dk))
    (WV : T -> 'M[R]_(D, dv)) (X : 'M[R]_(N, D)) (h : T) : 'M[R]_(N, dv) :=
  attention act (X *m WQ h) (X *m WK h) (X *m WV h).

(* ------------------------------------------------------------------------ *)
(** * Algorithm 1 *)

Record weights (R : Type) (H P D dk dv : nat) := Weights {
  w_q : 'I_H -> 'M[R]_(D, dk);
  w_k : 'I_H -> 'M[R]_(D, dk);
  w_v : 'I_H -> 'M[R]_(D, dv);
  alpha_q : 'I_H -> 'I_H -> 'I_P -> R;
  alpha_k : 'I_H -> 'I_H -> 'I_P -> R;
  alpha_v : 'I_H -> 'I_H -> 'I_P -> R;
  collapse : 'I_H -> 'I_H -> 'I_P -> R }.

(* The number of parameters: the sum over the fields of the product of their  *)
(* shape.                                                                     *)
Definition parameters R H P D dk dv (W : weights R H P D dk dv) : nat :=
  (H * (D * dk) + H * (D * dk) + H * (D * dv)
   + H * H * P + H * H * P + H * H * P + H * H * P)%N.

Definition mha_parameters (R : Type) (T : finType) D dk dv
    (WQ WK : T -> 'M[R]_(D, dk)) (WV : T -> 'M[R]_(D, dv)) : nat :=
  (#|T| * (D * dk) + #|T| * (D * dk) + #|T| * (D * dv))%N.

Section Layer.
Variables (R : comRingType) (H P N D dk dv : nat).
Implicit Types (W : weights R H P D dk dv) (X : 'M[R]_(N, D)) (h : 'I_H).

(* Step 1: pseudo-head j of head h mixes the H base projections.              *)
Definition pseudo e (a : 'I_H -> 'I_H -> 'I_P -> R) (w : 'I_H -> 'M[R]_(D, e))
    X h (j : 'I_P) : 'M[R]_(N, e) :=
  \sum_m a m h j *: (X *m w m).

Definition pseudo_q W X h j := pseudo (alpha_q W) (w_q W) X h j.
Definition pseudo_k W X h j := pseudo (alpha_k W) (w_k W) X h j.
Definition pseudo_v W X h j := pseudo (alpha_v W) (w_v W) X h j.

(* Step 2: stack the pseudo-heads, pseudo-major rows (j, n).                  *)
Definition stack e (B : 'I_P -> 'M[R]_(N, e)) : 'M[R]_(\sum_(j < P) N, e) :=
  \mxcol_(j < P) B j.

(* Step 3: one attention head on the P * N virtual tokens; block j of it.     *)
Definition stacked_output act W X h : 'M[R]_(\sum_(j < P) N, dv) :=
  attention act (stack (pseudo_q W X h)) (stack (pseudo_k W X h))
           (stack (pseudo_v W X h)).

Definition pseudo_output act W X h (j : 'I_P) : 'M[R]_(N, dv) :=
  submxcol (stacked_output act W X h) j.

(* Step 4: output h collapses the pseudo-outputs of all heads.                *)
Definition iha act W X h : 'M[R]_(N, dv) :=
  \sum_h' \sum_j collapse W h h' j *: pseudo_output act W X h' j.

(* The layer's output [O_0, ..., O_(H-1)].                                    *)
Definition iha_output act W X : 'M[R]_(N, \sum_(h < H) dv) :=
  \mxrow_(h < H) iha act W X h.

(* Mixing the projections is projecting by the mixed weights.                 *)
Definition mix e (a : 'I_H -> 'I_H -> 'I_P -> R) (w : 'I_H -> 'M[R]_(D, e))
    h (j : 'I_P) : 'M[R]_(D, e) :=
  \sum_m a m h j *: w m.

Lemma pseudo_mix e a (w : 'I_H -> 'M[R]_(D, e)) X h j :
  pseudo a w X h j = X *m mix a w h j.
Proof. by rewrite /mix mulmx_sumr; apply: eq_bigr => m _; rewrite scalemxAr. Qed.

(* For a one-hot coefficient the mixture is the entry it selects.             *)
Lemma pseudo_pick e a (w : 'I_H -> 'M[R]_(D, e)) X h j m0 :
  (forall m, a m h j = (m == m0)%:R) -> pseudo a w X h j = X *m w m0.
Proof.
move=> one_hot; rewrite /pseudo (bigD1 m0) //= one_hot eqxx scale1r.
by rewrite big1 ?addr0 // => m /negbTE ne; rewrite one_hot ne scale0r.
Qed.

(* A collapse that selects pseudo-head j of head h' makes it output h.        *)
Lemma iha_pick act W X h h0 j0 :
  (forall h' j, collapse W h h' j = ((h' == h0) && (j == j0))%:R) ->
  iha act W X h = pseudo_output act W X h0 j0.
Proof.
move=> one_hot; rewrite /iha (bigD1 h0) //= (bigD1 j0) //= one_hot !eqxx scale1r.
rewrite !big1 ?addr0 // => [h' /negbTE ne | j /negbTE ne].
  by rewrite big1 // => j _; rewrite one_hot ne scale0r.
by rewrite one_hot ne andbF scale0r.
Qed.

(** Linear attention (act the identity): block row j of the stacked product is
    the sum over the pseudo-keys j' of one linear head (j, j'). *)
Theorem pseudo_output_linear W X h j :
  pseudo_output id W X h j =
  \sum_j' pseudo_q W X h j *m (pseudo_k W X h j')^T *m pseudo_v W X h j'.
Proof.
rewrite /pseudo_output /stacked_output /attention -mulmxA -submxcol_mul.
rewrite mxcolK tr_mxcol mul_mxrow_mxcol mulmx_sumr.
by apply: eq_bigr => j' _; rewrite mulmxA.
Qed.

Corollary iha_linear W X h :
  iha id W X h = \sum_h' \sum_j \sum_j'
    collapse W h h' j *:
      (pseudo_q W X h' j *m (pseudo_k W X h' j')^T *m pseudo_v W X h' j').
Proof.
apply: eq_bigr => h' _; apply: eq_bigr => j _.
by rewrite pseudo_output_linear scaler_sumr.
Qed.

End Layer.

(* ------------------------------------------------------------------------ *)
(** * Row-wise attention: masks and weightings *)

(* A weighting says how much each position of a finite set T weighs, given    *)
(* which positions are allowed and the row of scores.                         *)
Definition weighting (R : Type) :=
  forall T : finType, pred T -> (T -> R) -> T -> R.

(* The weights follow the positions when these are relabelled.                *)
Definition equivariant R (w : weighting R) :=
  forall (T U : finType) (f : T -> U) (A : pred T) (B : pred U) s t,
    bijective f -> (forall x, B (f x) = A x) -> (forall x, t (f x) = s x) ->
  forall x, w U B t (f x) = w T A s x.

Lemma equivariant_ext R (w : weighting R) : equivariant w ->
  forall (T : finType) (A B : pred T) s t,
    A =1 B -> s =1 t -> w T A s =1 w T B t.
Proof.
move=> w_eq T A B s t AB st x.
by apply/esym/(w_eq T T id) => [|y|y]; rewrite ?AB ?st //; exists id.
Qed.

(* The activation of a weighting on n rows, row r being position pos r, where *)
(* mask p u says that p sees u.                                               *)
Definition rowwise (R : comRingType) (w : weighting R) (T : Type)
    (mask : rel T) n (pos : 'I_n -> T) (S : 'M[R]_n) : 'M[R]_n :=
  \matrix_(r, c) w [finType of 'I_n] (fun c' => mask (pos r) (pos c')) (S r) c.

(* Attention on positions, free of any order of rows.                         *)
Definition attend (R : comRingType) (w : weighting R) (T : finType)
    (mask : rel T) (score : T -> T -> R) (v : T -> R) (p : T) : R :=
  \sum_u w T (mask p) (score p) u * v u.

(* A head on rows that name positions one to one is attention on positions.   *)
Lemma attention_attend (R : comRingType) (w : weighting R) (T : finType)
    (mask : rel T) n (pos : 'I_n -> T) dk dv (q k : 'M[R]_(n, dk))
    (v : 'M[R]_(n, dv)) (score : T -> T -> R) (val : T -> R) r e :
  equivariant w -> bijective pos ->
  (forall c, score (pos r) (pos c) = (q *m k^T) r c) ->
  (forall c, val (pos c) = v c e) ->
  attention (rowwise w mask pos) q k v r e = attend w mask score val (pos r).
Proof.
move=> w_eq pos_bij scoreE valE; rewrite /attention /attend mxE.
rewrite (reindex pos) /=; last exact: onW_bij.
apply: eq_bigr => c _; rewrite mxE valE; congr (_ * _).
by apply/esym/w_eq => // x; rewrite scoreE.
Qed.

Lemma attend_eq (R : comRingType) (w : weighting R) (T : finType)
    (mask mask' : rel T) (score score' : T -> T -> R) (v v' : T -> R) p :
  equivariant w -> mask p =1 mask' p -> score p =1 score' p -> v =1 v' ->
  attend w mask score v p = attend w mask' score' v' p.
Proof.
move=> w_eq mE sE vE; apply: eq_bigr => u _.
by rewrite vE (equivariant_ext w_eq mE sE).
Qed.

(* The three masks on pairs (pseudo, token).                                  *)
Section Masks.
Variables P N : nat.
Implicit Types p u : 'I_P * 'I_N.
Definition no_mask (T : Type) : rel T := fun _ _ => true.
(* a token sees every pseudo-token of the tokens up to itself                 *)
Definition token_causal : rel ('I_P * 'I_N) := fun p u => (u.2 <= p.2)%N.
(* virtual position n * P + j sees the virtual positions up to itself         *)
Definition flat_position p := (p.2 * P + p.1)%N.
Definition flat_causal : rel ('I_P * 'I_N) :=
  fun p u => (flat_position u <= flat_position p)%N.
End Masks.
Arguments no_mask {T}.
Arguments token_causal {P N}.
Arguments flat_position {P N}.
Arguments flat_causal {P N}.
(* the causal mask of MHA                                                     *)
Definition causal {N} : rel 'I_N := fun n n' => (n' <= n)%N.

(* ------------------------------------------------------------------------ *)
(** * Order of the virtual tokens *)

Section Order.
Variables P N : nat.

(* Stacked: row r is block (pseudo) j, row (token) n of the block.            *)
Definition stacked_at (r : 'I_(\sum_(j < P) N)) : 'I_P * 'I_N :=
  (tagnat.sig1 r, tagnat.sig2 r).
Definition stacked_row (p : 'I_P * 'I_N) : 'I_(\sum_(j < P) N) :=
  @tagnat.Rank P (fun=> N) p.1 p.2.

(* Interleaved: row r is block (token) n, row (pseudo) j of the block.        *)
Definition interleaved_at (r : 'I_(\sum_(n < N) P)) : 'I_P * 'I_N :=
  (tagnat.sig2 r, tagnat.sig1 r).
Definition interleaved_row (p : 'I_P * 'I_N) : 'I_(\sum_(n < N) P) :=
  @tagnat.Rank N (fun=> P) p.2 p.1.

Lemma stacked_atK : cancel stacked_at stacked_row.
Proof. by move=> r; exact: tagnat.sig2K. Qed.

Lemma stacked_rowK : cancel stacked_row stacked_at.
Proof.
case=> j n; rewrite /stacked_at /stacked_row /= tagnat.Rank1K; congr (_, _).
by apply: val_inj; rewrite /= tagnat.Rank2K.
Qed.

Lemma interleaved_atK : cancel interleaved_at interleaved_row.
Proof. by move=> r; exact: tagnat.sig2K. Qed.

Lemma interleaved_rowK : cancel interleaved_row interleaved_at.
Proof.
case=> j n; rewrite /interleaved_at /interleaved_row /= tagnat.Rank1K.
by congr (_, _); apply: val_inj; rewrite /= tagnat.Rank2K.
Qed.

Lemma stacked_at_bij : bijective stacked_at.
Proof. by exists stacked_row; [apply: stacked_atK | apply: stacked_rowK]. Qed.

Lemma interleaved_at_bij : bijective interleaved_at.
Proof.
by exists interleaved_row; [apply: interleaved_atK | apply: interleaved_rowK].
Qed.

(* The flat position is the row number in the interleaved order, so the flat  *)
(* mask is the ordinary causal mask on interleaved rows.                      *)
Lemma interleaved_rowE (p : 'I_P * 'I_N) : interleaved_row p = flat_position p :> nat.
Proof.
case: p => j n; rewrite /interleaved_row tagnat.RankEsum /flat_position /=.
rewrite (eq_bigl (fun k : 'I_N => (k < n)%N)) //.
by rewrite -(big_ord_widen N (fun=> P)) ?sum_nat_const ?card_ord // ltnW.
Qed.

Lemma flat_causalE r c :
  flat_causal (interleaved_at r) (interleaved_at c) = (c <= r)%N.
Proof. by rewrite /flat_causal -!interleaved_rowE !interleaved_atK. Qed.
End Order.

Section Virtual.
Variables (R : comRingType) (H P N D dk dv : nat) (w : weighting R).
Hypothesis w_equivariant : equivariant w.
Implicit Types (W : weights R H P D dk dv) (X : 'M[R]_(N, D)) (h : 'I_H).
Implicit Types (mask : rel ('I_P * 'I_N)).

(* The activation on the stacked virtual tokens.                              *)
Definition on_stack mask := rowwise w mask (@stacked_at P N).

(* Score of virtual query p against virtual key u.                            *)
Definition score W X h (p u : 'I_P * 'I_N) : R :=
  (pseudo_q W X h p.1 *m (pseudo_k W X h u.1)^T) p.2 u.2.

(** Every row-wise activation: the output of pseudo-head j at token n is the
    sum over all virtual tokens (j', n') of the weight of (j', n') for (j, n)
    times its value. *)
Theorem pseudo_outputE mask W X h j n e :
  pseudo_output (on_stack mask) W X h j n e =
  \sum_(u : 'I_P * 'I_N) w (mask (j, n)) (score W X h (j, n)) u
                         * pseudo_v W X h u.1 u.2 e.
Proof.
have at_row := @stacked_rowK P N (j, n); set r := stacked_row _ in at_row.
have rowE dm (B : 'I_P -> 'M[R]_(N, dm)) c l :
  stack B c l = B (stacked_at c).1 (stacked_at c).2 l by rewrite mxE.
rewrite mxE (_ : tagnat.Rank j n = r) //.
rewrite (@attention_attend _ _ _ _ _ _ _ _ _ _ _ (score W X h)
  (fun u => pseudo_v W X h u.1 u.2 e)) ?at_row //.
- exact: stacked_at_bij.
- move=> c; rewrite /score !mxE; apply: eq_bigr => l _.
  by rewrite [in RHS]rowE at_row; congr (_ * _); rewrite mxE [RHS]mxE rowE.
Qed.

(* The interleaved layer: the same head on token-major rows (n, j).           *)
Definition interleave e (B : 'I_P -> 'M[R]_(N, e)) : 'M[R]_(\sum_(n < N) P, e) :=
  \mxcol_(n < N) \matrix_(j, l) B j n l.

Definition interleaved_output mask W X h (j : 'I_P) : 'M[R]_(N, dv) :=
  \matrix_(n, e) submxcol
    (attention (rowwise w mask (@interleaved_at P N)) (interleave (pseudo_q W X h))
       (interleave (pseudo_k W X h)) (interleave (pseudo_v W X h))) n j e.

(** The interleaved order gives the same output as the stacked order, without
    a mask and with any mask that is a relation between pairs (pseudo, token). *)
Theorem interleaved_is_stacked mask W X h j :
  interleaved_output mask W X h j = pseudo_output (on_stack mask) W X h j.
Proof.
apply/matrixP => n e; rewrite pseudo_outputE.
have at_row := @interleaved_rowK P N (j, n); set r := interleaved_row _ in at_row.
have rowE dm (B : 'I_P -> 'M[R]_(N, dm)) c l :
  interleave B c l = B (interleaved_at c).1 (interleaved_at c).2 l.
  by rewrite !mxE.
rewrite 2!mxE (_ : tagnat.Rank n j = r) //.
rewrite (@attention_attend _ _ _ _ _ _ _ _ _ _ _ (score W X h)
  (fun u => pseudo_v W X h u.1 u.2 e)) ?at_row //.
- exact: interleaved_at_bij.
- move=> c; rewrite /score !mxE; apply: eq_bigr => l _.
  by rewrite [in RHS]rowE at_row; congr (_ * _); rewrite mxE [RHS]mxE rowE.
Qed.

(* The plain causal kernel on interleaved rows is the flat mask.              *)
Lemma rowwise_causal :
  rowwise w causal id =1 rowwise w flat_causal (@interleaved_at P N).
Proof.
move=> S; apply/matrixP => r c; rewrite 2!mxE.
by apply: equivariant_ext => // c'; rewrite flat_causalE.
Qed.
End Virtual.

(* ------------------------------------------------------------------------ *)
(** * The weightings: linear, normalised, hard *)

(* Linear attention: the weight is the score.                                 *)
Definition linear_weighting (R : comRingType) : weighting R :=
  fun T A s t => if A t then s t else 0.

(* Scores passed through e and divided by the sum of the row; softmax is the  *)
(* instance e(s) = exp(s / sqrt dk).                                          *)
Definition normalised (F : fieldType) (e : F -> F) : weighting F :=
  fun T A s t => if A t then e (s t) / \sum_(u | A u) e (s u) else 0.

(* Hard attention: the uniform average over the maximal scores of the row.    *)
Definition maximal (F : realFieldType) (T : finType) (A : pred T) (s : T -> F) : pred T :=
  fun t => A t && [forall u, A u ==> (s u <= s t)].
Definition hard (F : realFieldType) : weighting F :=
  fun T A s t => if maximal A s t then (#|[pred u | maximal A s u]|%:R)^-1 else 0.

Lemma linear_equivariant (R : comRingType) : equivariant (@linear_weighting R).
Proof. by move=> T U f A B s t _ AB st x; rewrite /linear_weighting AB st. Qed.

Lemma rowwise_linear (R : comRingType) T n (pos : 'I_n -> T) (S : 'M[R]_n) :
  rowwise (@linear_weighting R) no_mask pos S = S.
Proof. by apply/matrixP => i j; rewrite mxE. Qed.

(* Without a mask the activation of linear attention is the identity, so that *)
(* the layer on the stack with it is the layer with act = id.                 *)
Lemma pseudo_output_on_stack_linear (R : comRingType) H P N D dk dv
    (W : weights R H P D dk dv) (X : 'M[R]_(N, D)) h j :
  pseudo_output (on_stack (@linear_weighting R) no_mask) W X h j =
  pseudo_output id W X h j.
Proof. by rewrite /pseudo_output /stacked_output /attention /on_stack rowwise_linear. Qed.

Lemma normalised_equivariant (F : fieldType) (e : F -> F) : equivariant (normalised e).
Proof.
move=> T U f A B s t f_bij AB st x; rewrite /normalised AB st.
rewrite [in LHS](reindex f) /=; last exact: onW_bij.
by under eq_bigl do rewrite AB; under eq_bigr do rewrite st.
Qed.

Lemma hard_equivariant (F : realFieldType) : equivariant (@hard F).
Proof.
move=> T U f A B s t f_bij AB st x.
have maxE y : maximal B t (f y) = maximal A s y.
  rewrite /maximal AB; congr (_ && _).
  apply/forallP/forallP => max_y u; first by rewrite -AB -!st; apply: max_y.
  by case: f_bij => g gK fK; rewrite -(fK u) AB !st; apply: max_y.
rewrite /hard maxE -!sum1_card (reindex f) /=; last exact: onW_bij.
by under eq_bigl do rewrite !inE maxE.
Qed.

(* The weights of a row sum to one when its sum of scores is not zero.        *)
Lemma normalised_sum1 (F : fieldType) (e : F -> F) (T : finType) (A : pred T) s :
  \sum_(u | A u) e (s u) != 0 -> \sum_t normalised e A s t = 1.
Proof.
move=> row_neq0; rewrite -big_mkcond -mulr_suml.
exact: mulfV.
Qed.

(* For a positive e a row with an allowed position has a positive sum.        *)
Lemma row_sum_gt0 (F : realFieldType) (e : F -> F) (T : finType) (A : pred T) s t :
  (forall x, 0 < e x) -> A t -> 0 < \sum_(u | A u) e (s u).
Proof.
move=> e_gt0 At; rewrite (bigD1 t) //=; apply: ltr_paddr => //.
by apply: sumr_ge0 => u _; apply: ltW.
Qed.

(* When the greatest allowed score is known, hard attention averages over the *)
(* positions that attain it.                                                  *)
Lemma hardE (F : realFieldType) (T : finType) (A : pred T) (s : T -> F) c t0 :
  A t0 -> s t0 = c -> (forall u, A u -> s u <= c) ->
  forall t, hard A s t = if A t && (s t == c)
                         then (#|[pred u | A u && (s u == c)]|%:R)^-1 else 0.
Proof.
move=> At0 st0 s_le; have maxE t : maximal A s t = A t && (s t == c).
  rewrite /maximal; case At: (A t) => //=; apply/forallP/eqP => [max_t | -> u].
    by apply/le_anti; rewrite s_le //= -st0; apply: (implyP (max_t t0)).
  by apply/implyP; apply: s_le.
by move=> t; rewrite /hard maxE; congr (if _ then (_%:R)^-1 else _); apply: eq_card.
Qed.

(* ------------------------------------------------------------------------ *)
(** * MHA is IHA with one pseudo-head and identity mixing *)

Section MultiHead.
Variables (R : comRingType) (H N D dk dv : nat).
Variables (WQ WK : 'I_H -> 'M[R]_(D, dk)) (WV : 'I_H -> 'M[R]_(D, dv)).
Implicit Types (X : 'M[R]_(N, D)) (h : 'I_H).

Definition multi_head : weights R H 1 D dk dv :=
  let same := fun m h (_ : 'I_1) => (m == h)%:R in
  Weights WQ WK WV same same same (fun h h' _ => (h' == h)%:R).

Lemma pseudo_multi_head e (w : 'I_H -> 'M[R]_(D, e)) X h (j : 'I_1) :
  pseudo (fun m h (_ : 'I_1) => (m == h)%:R) w X h j = X *m w h.
Proof. exact: pseudo_pick. Qed.

Lemma iha_multi_head act X h :
  iha act multi_head X h = pseudo_output act multi_head X h ord0.
Proof.
by apply: iha_pick => h' j; rewrite [j]ord1 eqxx andbT.
Qed.

(* One entry of an MHA head as a sum over tokens.                             *)
Lemma mhaE (w : weighting R) (mask : rel 'I_N) X h n e :
  mha (rowwise w mask id) WQ WK WV X h n e =
  \sum_n' w _ (mask n) (((X *m WQ h) *m (X *m WK h)^T) n) n' * (X *m WV h) n' e.
Proof. by rewrite /mha /attention mxE; apply: eq_bigr => n' _; rewrite mxE. Qed.

(** MHA is IHA with P = 1 and identity mixing, for every row-wise activation
    and every mask on tokens. *)
Theorem mha_is_iha (w : weighting R) (mask : rel 'I_N) X h :
  equivariant w ->
  iha (on_stack w (fun p u => mask p.2 u.2)) multi_head X h =
  mha (rowwise w mask id) WQ WK WV X h.
Proof.
move=> w_eq; rewrite iha_multi_head; apply/matrixP => n e.
rewrite pseudo_outputE // mhaE (reindex (fun n' : 'I_N => (ord0 : 'I_1, n'))) /=.
  apply: eq_bigr => n' _; rewrite [pseudo_v _ _ _ _]pseudo_multi_head.
  congr (_ * _); apply: w_eq => [|//|c].
    by exists snd => [//|[j c]]; rewrite [j]ord1.
  by rewrite /score [pseudo_q _ _ _ _]pseudo_multi_head [pseudo_k _ _ _ _]pseudo_multi_head.
by apply: onW_bij; exists snd => [//|[j c]]; rewrite [j]ord1.
Qed.

(* The same for linear attention, with act the identity on both sides.        *)
Corollary mha_is_iha_linear X h : iha id multi_head X h = mha id WQ WK WV X h.
Proof.
rewrite iha_multi_head pseudo_output_linear big_ord1.
rewrite [pseudo_q _ _ _ _]pseudo_multi_head [pseudo_k _ _ _ _]pseudo_multi_head.
by rewrite [pseudo_v _ _ _ _]pseudo_multi_head.
Qed.

(* With one pseudo-head both causal masks are the causal mask of MHA.         *)
Lemma flat_causal1 (p u : 'I_1 * 'I_N) : flat_causal p u = causal p.2 u.2.
Proof. by rewrite /flat_causal /flat_position [p.1]ord1 [u.1]ord1 !muln1 !addn0. Qed.
Lemma token_causal1 (p u : 'I_1 * 'I_N) : token_causal p u = causal p.2 u.2.
Proof. by []. Qed.
End MultiHead.
