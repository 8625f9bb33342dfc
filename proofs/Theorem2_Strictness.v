(* Theorem 2 (its full form is Theorem 5), second half: the inclusion is      *)
(* strict.                                                                    *)
(*                                                                            *)
(* On repeated tokens, where every row of the input is the same row x, MHA is *)
(* linear in x and IHA with two pseudo-heads is not.  The example printed in  *)
(* the paper is linear there; with the signs +,- on the values as well it is  *)
(* not.                                                                       *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem2_Inclusion.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * Repeated tokens *)

(* The input of N rows equal to x: the column of ones times x.                *)
Definition repeated (R : comRingType) N D (x : 'rV[R]_D) : 'M[R]_(N, D) := const_mx 1 *m x.
Arguments repeated {R} N {D} x.

Section RepeatedTokens.
Variables (R : comRingType) (N D : nat).
Implicit Type x : 'rV[R]_D.

Lemma repeatedE x n c : repeated N x n c = x 0 c.
Proof. by rewrite mxE big_ord1 mxE mul1r. Qed.

Lemma repeated_mul E x (W : 'M[R]_(D, E)) : repeated N x *m W = repeated N (x *m W).
Proof. by rewrite /repeated mulmxA. Qed.

Lemma repeated_linear a x y : repeated N (a *: x + y) = a *: repeated N x + repeated N y.
Proof. by rewrite /repeated mulmxDr scalemxAr. Qed.

(* Rows of weights that sum to one leave repeated rows as they are, whatever  *)
(* the weights depend on.                                                     *)
Lemma averaging_repeated (A : 'M[R]_N) x :
  (forall n, \sum_n' A n n' = 1) -> A *m repeated N x = repeated N x.
Proof.
move=> A1; apply/matrixP => n c; rewrite mxE repeatedE.
by under eq_bigr do rewrite repeatedE; rewrite -mulr_suml A1 mul1r.
Qed.
End RepeatedTokens.

(* ------------------------------------------------------------------------ *)
(** * MHA on repeated tokens *)

(* Weightings whose weights sum to one as soon as a position is allowed.      *)
Definition averages (R : comRingType) (w : weighting R) :=
  forall (T : finType) (A : pred T) s t, A t -> \sum_u w T A s u = 1.

Lemma normalised_averages (F : realFieldType) (e : F -> F) :
  (forall s, 0 < e s) -> averages (normalised e).
Proof.
by move=> e_gt0 T A s t At; apply/normalised_sum1/lt0r_neq0/(@row_sum_gt0 _ _ _ _ _ t).
Qed.

Lemma hard_averages (F : realFieldType) : averages (@hard F).
Proof.
move=> T A s t At.
have [m Am s_le] : exists2 m, A m & forall u, A u -> s u <= s m.
  by case: (arg_maxP s At) => m Am s_le; exists m.
under eq_bigr do rewrite (hardE Am erefl s_le).
rewrite -big_mkcond /= sumr_const -[LHS]mulr_natr.
by rewrite mulVf // pnatr_eq0 -lt0n; apply/card_gt0P; exists m; rewrite inE Am eqxx.
Qed.

Section MHA.
Variables (F : realFieldType) (N D : nat).

(** On repeated tokens every MHA head is x |-> x W_V at every token, for every
    weighting that sums to one (softmax, hard attention) and every mask that
    lets each token see some token. *)
Theorem mha_repeated H dk dv (w : weighting F) (mask : rel 'I_N)
    (WQ WK : 'I_H -> 'M[F]_(D, dk)) (WV : 'I_H -> 'M[F]_(D, dv)) x h :
  averages w -> (forall n, exists n', mask n n') ->
  mha (rowwise w mask id) WQ WK WV (repeated N x) h = repeated N (x *m WV h).
Proof.
move=> w1 visible; rewrite /mha /attention [X in _ *m X]repeated_mul.
apply: averaging_repeated => n; have [n' seen] := visible n.
by under eq_bigr do rewrite mxE; apply: (w1 _ _ _ n').
Qed.

(* A layer of MHA on N tokens, of E output columns: any finite set of heads,  *)
(* each with its own widths, weighting and mask, then an output projection,   *)
(* whose block of rows for head t is l_o t.                                   *)
Record mha_weights E := MhaWeights {
  heads : finType;
  width_qk : heads -> nat;
  width_v : heads -> nat;
  l_q : forall t, 'M[F]_(D, width_qk t);
  l_k : forall t, 'M[F]_(D, width_qk t);
  l_v : forall t, 'M[F]_(D, width_v t);
  l_o : forall t, 'M[F]_(width_v t, E);
  weighs : heads -> weighting F;
  sees : heads -> rel 'I_N;
  weighs_average : forall t, averages (weighs t);
  sees_some : forall t n, exists n', sees t n n' }.

Definition mha_layer E (L : mha_weights E) (X : 'M[F]_(N, D)) : 'M[F]_(N, E) :=
  \sum_(t : heads L)
    attention (rowwise (weighs t) (sees t) id) (X *m l_q t) (X *m l_k t) (X *m l_v t) *m l_o t.

(** On repeated tokens every such layer is linear in the token. *)
Theorem mha_layer_linear E (L : mha_weights E) a (x y : 'rV[F]_D) :
  mha_layer L (repeated N (a *: x + y)) =
  a *: mha_layer L (repeated N x) + mha_layer L (repeated N y).
Proof.
pose M := \sum_(t : heads L) l_v t *m l_o t.
have layerE z : mha_layer L (repeated N z) = repeated N (z *m M).
  rewrite -repeated_mul mulmx_sumr; apply: eq_bigr => t _; rewrite mulmxA; congr (_ *m _).
  rewrite /attention [X in _ *m X]repeated_mul [RHS]repeated_mul.
  apply: averaging_repeated => n; have [n' seen] := sees_some t n.
  by under eq_bigr do rewrite mxE; apply: (@weighs_average _ _ _ _ _ _ n').
by rewrite !layerE mulmxDl -scalemxAl repeated_linear.
Qed.
End MHA.

(* ------------------------------------------------------------------------ *)
(** * IHA on repeated tokens *)

Section IHA.
Variables (F : realFieldType) (e : F -> F) (H P N D dk dv : nat).
Implicit Types (W : weights F H P D dk dv) (x : 'rV[F]_D) (h : 'I_H) (mask : rel ('I_P * 'I_N)).

(* The score of pseudo-query j against pseudo-key j' of one token x.          *)
Definition logit W x h (j j' : 'I_P) : F := (pseudo_q W x h j *m (pseudo_k W x h j')^T) 0 0.

(* How many copies of pseudo-key j' the virtual token (j, n) sees.            *)
Definition seen mask (j : 'I_P) (n : 'I_N) (j' : 'I_P) : nat := #|[pred n' | mask (j, n) (j', n')]|.

Lemma pseudo_repeated d a (w : 'I_H -> 'M[F]_(D, d)) x h (j : 'I_P) :
  pseudo a w (repeated N x) h j = repeated N (pseudo a w x h j).
Proof. by rewrite !pseudo_mix repeated_mul. Qed.

Lemma sum_seen mask j n (f : 'I_P -> F) :
  \sum_(u | mask (j, n) u) f u.1 = \sum_j' (seen mask j n j')%:R * f j'.
Proof.
transitivity (\sum_j' \sum_(n' | mask (j, n) (j', n')) f j').
  rewrite [RHS](pair_big_dep xpredT (fun j' n' => mask (j, n) (j', n')) (fun j' _ => f j')) /=.
  by apply: eq_bigl => -[].
by apply: eq_bigr => j' _; rewrite sumr_const mulr_natl.
Qed.

(** On repeated tokens, under any mask, pseudo-head j at token n is the average
    of the P pseudo-values of the one token x, weighted by e(logit) times the
    number of copies seen. *)
Theorem pseudo_output_repeated mask W x h j n c :
  pseudo_output (on_stack (normalised e) mask) W (repeated N x) h j n c =
  (\sum_j' (seen mask j n j')%:R * (e (logit W x h j j') * pseudo_v W x h j' 0 c))
  / (\sum_j' (seen mask j n j')%:R * e (logit W x h j j')).
Proof.
rewrite pseudo_outputE; last exact: normalised_equivariant.
transitivity (\sum_u normalised e (mask (j, n)) (fun u => logit W x h j u.1) u
                     * pseudo_v W x h u.1 0 c).
  apply: eq_bigr => u _; rewrite /pseudo_v pseudo_repeated repeatedE; congr (_ * _).
  apply: (equivariant_ext (normalised_equivariant e)) => // u'.
  rewrite /score /logit /pseudo_q /pseudo_k !pseudo_repeated [LHS]mxE [RHS]mxE.
  by apply: eq_bigr => i _; rewrite repeatedE mxE repeatedE [in RHS]mxE.
rewrite normalised_average (sum_seen _ _ _ (fun j' => e (logit W x h j j') * pseudo_v W x h j' 0 c)).
by rewrite (sum_seen _ _ _ (fun j' => e (logit W x h j j'))).
Qed.

(* With a mask on tokens all pseudo-keys are seen equally often.              *)
Corollary pseudo_output_repeated_token (visible : rel 'I_N) W x h j n c :
  (exists n', visible n n') ->
  pseudo_output (on_stack (normalised e) (fun p u => visible p.2 u.2)) W (repeated N x) h j n c =
  (\sum_j' e (logit W x h j j') * pseudo_v W x h j' 0 c) / (\sum_j' e (logit W x h j j')).
Proof.
case=> n' sees; rewrite pseudo_output_repeated /seen /= -!mulr_sumr -mulf_div divff ?mul1r //.
by rewrite pnatr_eq0 -lt0n; apply/card_gt0P; exists n'.
Qed.

(* Under the flat mask token n sees n copies of every pseudo-key, and one     *)
(* more of those up to its own.                                               *)
Lemma seen_flat (j j' : 'I_P) n : seen flat_causal j n j' = (n + (j' <= j))%N.
Proof.
have below m : (m <= N)%N -> #|[pred n' : 'I_N | (n' < m)%N]| = m.
  by move=> le_m; rewrite -sum1_card -(big_ord_widen N (fun=> 1%N) le_m) sum1_card card_ord.
transitivity #|[pred n' : 'I_N | (n' < n + (j' <= j))%N]|.
  apply: eq_card => n'; rewrite !inE flat_sees; case: (j' <= j)%N.
    by rewrite andbT addn1 ltnS orbC -leq_eqVlt.
  by rewrite andbF orbF addn0.
by rewrite below //; case: (j' <= j)%N; rewrite ?addn1 ?addn0 // ltnW.
Qed.
End IHA.

(* ------------------------------------------------------------------------ *)
(** * One pseudo-head is not enough *)

(** P = 1, any mixing and collapse: output h is a combination of the heads of
    the MHA with the mixed base weights, so an output projection after MHA gives
    all of it. *)
Theorem one_pseudo_head (R : comRingType) (w : weighting R) H N D dk dv
    (W : weights R H 1 D dk dv) (visible : rel 'I_N) (X : 'M[R]_(N, D)) h :
  equivariant w ->
  iha (on_stack w (fun p u => visible p.2 u.2)) W X h =
  \sum_h' collapse W h h' ord0 *:
    mha (rowwise w visible id) (mix (alpha_q W) (w_q W) ^~ ord0) (mix (alpha_k W) (w_k W) ^~ ord0)
        (mix (alpha_v W) (w_v W) ^~ ord0) X h'.
Proof.
move=> w_eq; apply: eq_bigr => h' _; rewrite big_ord1 -mha_is_iha // iha_multi_head.
set V := multi_head _ _ _; congr (_ *: _).
have same e a (v : 'I_H -> 'M[R]_(D, e)) :
    stack (pseudo a v X h') = stack (pseudo (fun m h (_ : 'I_1) => (m == h)%:R) (mix a v ^~ ord0) X h').
  by apply: eq_mxcol => j; rewrite pseudo_multi_head pseudo_mix [j]ord1.
rewrite /pseudo_output /stacked_output /pseudo_q /pseudo_k /pseudo_v.
by rewrite (same _ (alpha_q W)) (same _ (alpha_k W)) (same _ (alpha_v W)).
Qed.

(** P = 1 is linear on repeated tokens, whatever the weights. *)
Theorem one_pseudo_head_linear (F : realFieldType) (e : F -> F) H N D dk dv
    (W : weights F H 1 D dk dv) (mask : rel ('I_1 * 'I_N)) h a (x y : 'rV[F]_D) :
  (forall s, 0 < e s) -> (forall p, exists u, mask p u) ->
  let layer x := iha (on_stack (normalised e) mask) W (repeated N x) h in
  layer (a *: x + y) = a *: layer x + layer y.
Proof.
move=> e_gt0 sees; pose M := \sum_h' \sum_j collapse W h h' j *: mix (alpha_v W) (w_v W) h' j.
have layerE z : iha (on_stack (normalised e) mask) W (repeated N z) h = repeated N (z *m M).
  rewrite -repeated_mul mulmx_sumr; apply: eq_bigr => h' _.
  rewrite mulmx_sumr; apply: eq_bigr => j _; rewrite -scalemxAr -pseudo_mix; congr (_ *: _).
  apply/matrixP => n c; rewrite pseudo_output_repeated !big_ord1 pseudo_repeated repeatedE.
  rewrite mulrA mulrC mulrA mulVf ?mul1r ?[j]ord1 //; apply: mulf_neq0; last exact: lt0r_neq0.
  have [[i n'] seen_n'] := sees (0, n); rewrite pnatr_eq0 -lt0n; apply/card_gt0P; exists n'.
  by move: seen_n'; rewrite [i]ord1.
by rewrite /= !layerE mulmxDl -scalemxAl repeated_linear.
Qed.
