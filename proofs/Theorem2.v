(* Theorem 2 (its full form is Theorem 5): IHA contains MHA, strictly.        *)
(*                                                                            *)
(* The parameter count and the inclusion are in Theorem2_Inclusion.v, the     *)
(* failure of the inclusion for pseudo-heads other than the last under the    *)
(* flat-causal mask in Theorem2_Flat.v, repeated tokens in                    *)
(* Theorem2_Strictness.v, the printed example and its correction in           *)
(* Theorem2_Examples.v.  Here: no MHA computes the corrected example; the     *)
(* theorem as a whole.                                                        *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem2_Inclusion Theorem2_Strictness Theorem2_Examples.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * The separation *)

(* A function of the repeated token that is not additive is computed by no    *)
(* layer of MHA.                                                              *)
Lemma not_mha (F : realFieldType) N D E (L : mha_weights F N D E) (f : 'rV[F]_D -> 'M[F]_(N, E)) x :
  f (x + x) <> f x + f x -> exists y, mha_layer L (repeated N y) <> f y.
Proof.
move=> not_add; case: (mha_layer L (repeated N x) =P f x) => [eq1 | ]; last by exists x.
exists (x + x) => eq2; apply: not_add; rewrite -eq2 -eq1.
by have := mha_layer_linear L 1 x x; rewrite !scale1r.
Qed.

(* The class of layers holds the concatenated heads of MHA: the projection     *)
(* then only places each head.                                                *)
Lemma concatenation_is_layer (F : realFieldType) H N D dk dv (w : weighting F)
    (visible : rel 'I_N) (WQ WK : 'I_H -> 'M[F]_(D, dk)) (WV : 'I_H -> 'M[F]_(D, dv)) :
  averages w -> (forall n, exists n', visible n n') ->
  exists L : mha_weights F N D (\sum_(h < H) dv),
  forall X, mha_layer L X = \mxrow_(h < H) mha (rowwise w visible id) WQ WK WV X h.
Proof.
move=> w_avg sees; pose place h : 'M[F]_(dv, \sum_(k < H) dv) := \mxrow_k (k == h)%:R%:M.
exists (@MhaWeights F N D _ [finType of 'I_H] (fun=> dk) (fun=> dv) WQ WK WV place
          (fun=> w) (fun=> visible) (fun=> w_avg) (fun=> sees)) => X.
pose head := mha (rowwise w visible id) WQ WK WV X.
transitivity (\sum_h \mxrow_(k < H) (head h *m (k == h)%:R%:M)).
  by apply: eq_bigr => h _; rewrite /place mul_mxrow.
rewrite -mxrow_sum; apply/eq_mxrow => k; rewrite (bigD1 k) //= eqxx mulmx1.
by rewrite big1 ?addr0 // => h /negbTE ne; rewrite eq_sym ne raddf0 mulmx0.
Qed.

(* Some first pseudo-query sees the first and another pseudo-head.            *)
Definition sees_two P N (mask : rel ('I_P.+1 * 'I_N)) :=
  exists n, (exists n', mask (ord0, n) (ord0, n')) /\
            (exists u, (u.1 != ord0) && mask (ord0, n) u).

Lemma sees_two_token P N (visible : rel 'I_N.+1) : (exists n', visible 0 n') ->
  @sees_two P.+1 N.+1 (fun p u => visible p.2 u.2).
Proof. by case=> n' see; exists 0; split; [exists n' | exists (lift ord0 ord0, n')]. Qed.

Lemma sees_two_flat P N : @sees_two P.+1 N.+2 flat_causal.
Proof.
by exists (lift ord0 ord0); split; [exists 0 | exists (lift ord0 ord0, 0)]; rewrite ?flat_sees.
Qed.

Section Separation.
Variables (F : realFieldType) (e : F -> F) (H P N D dk dv : nat).
Hypothesis e_gt0 : forall s, 0 < e s.
Hypothesis e_incr : {homo e : s t / s < t}.
Implicit Type mask : rel ('I_P.+1 * 'I_N).

(* Base weights that read and write the first coordinate only.                *)
Definition corner K m n : 'I_K -> 'M[F]_(m.+1, n.+1) := fun=> delta_mx 0 0.

Definition separating : weights F H P.+1 D.+1 dk.+1 dv.+1 :=
  corrected (@corner H D dk) (@corner H D dk) (@corner H D dv) P.

Let x0 : 'rV[F]_D.+1 := delta_mx 0 0.

Let value_corner c m h : (c *: x0) *m @corner H D m h = c *: delta_mx 0 0.
Proof. by rewrite -scalemxAl mul_delta_mx. Qed.

Let self_score_corner c h : self_score (@corner H D dk) (@corner H D dk) (c *: x0) h = c * c.
Proof.
rewrite /self_score !value_corner linearZ /= -scalemxAl -scalemxAr scalerA trmx_delta.
by rewrite mul_delta_mx !mxE !eqxx mulr1.
Qed.

(** With a positive, strictly increasing e, each output of the corrected example
    is not additive in the repeated token. *)
Theorem separating_not_additive mask h : sees_two mask ->
  let f x := iha (on_stack (normalised e) mask) separating (repeated N x) h in
  f (x0 + x0) <> f x0 + f x0.
Proof.
case=> n [[n' see1] [u /andP[u_other see2]]] f add.
have {add} := congr1 (fun O : 'M_(_, _) => O n 0) add; rewrite /f [RHS]mxE.
rewrite -[x0 + x0]mulr2n -scaler_nat -[X in _ = iha _ _ (repeated N X) h n 0 + _]scale1r.
rewrite -[X in _ = _ + iha _ _ (repeated N X) h n 0]scale1r !corrected_row.
rewrite !self_score_corner !value_corner !mxE !eqxx !mulr1 -mulr2n -[RHS]mulr_natr.
apply/eqP; rewrite (inj_eq (mulIf _)) ?pnatr_eq0 //; apply/eqP/ratio_neq => //.
- by rewrite ltr0n; apply: (seen_gt0 (u := (ord0, n'))).
- rewrite (bigD1 u.1) //= ltr_paddr //; first by apply: sumr_ge0 => j _; apply: ler0n.
  by rewrite ltr0n; apply: seen_gt0.
- by rewrite -natrM pnatr_eq1.
Qed.

(** Strictness, for one output of the layer: no MHA, of any number of heads, any
    widths, any masks, any score functions and any output projection, agrees
    with it on repeated tokens. *)
Theorem separating_not_mha mask h (L : mha_weights F N D.+1 dv.+1) : sees_two mask ->
  exists x, mha_layer L (repeated N x) <>
            iha (on_stack (normalised e) mask) separating (repeated N x) h.
Proof. by move=> /separating_not_additive not_add; apply: (not_mha L (not_add h)). Qed.
End Separation.

(* ------------------------------------------------------------------------ *)
(** * Theorem 2 *)

Section Theorem2.
Variables (F : realFieldType) (e : F -> F).
Hypothesis e_gt0 : forall s, 0 < e s.
Hypothesis e_incr : {homo e : s t / s < t}.

(** Strictness for the whole output: with at least one head, two pseudo-heads and
    a mask under which some first pseudo-query sees two pseudo-heads, there are
    weights of IHA with which no MHA agrees on repeated tokens. *)
Theorem strictness H P N D dk dv (mask : rel ('I_P.+2 * 'I_N)) : sees_two mask ->
  exists W : weights F H.+1 P.+2 D.+1 dk.+1 dv.+1,
  forall L : mha_weights F N D.+1 (\sum_(h < H.+1) dv.+1),
  exists x, mha_layer L (repeated N x) <>
            iha_output (on_stack (normalised e) mask) W (repeated N x).
Proof.
move=> two; exists (separating F _ _ _ _ _) => L.
pose f x := iha_output (on_stack (normalised e) mask) (separating F H.+1 _ D dk dv) (repeated N x).
apply: (@not_mha _ _ _ _ L f (delta_mx 0 0)) => /(congr1 (fun O => submxrow O 0)).
rewrite submxrowD !mxrowK; exact: separating_not_additive.
Qed.

(** Theorem 2, attention without a mask, for every positive and strictly
    increasing score function e (softmax: e(s) = exp(s / sqrt dk)): IHA with any
    number P >= 1 of pseudo-heads computes every MHA with the same H, and for
    P >= 2 it has weights with which no MHA agrees, not even on repeated tokens
    and not with more heads, other widths or an output projection. *)
Theorem theorem2_no_mask H P N D dk dv :
  (forall (WQ WK : 'I_H -> 'M[F]_(D, dk)) (WV : 'I_H -> 'M[F]_(D, dv)),
   exists W : weights F H P.+1 D dk dv, forall X : 'M_(N, D),
   iha_output (on_stack (normalised e) no_mask) W X =
   \mxrow_(h < H) mha (rowwise (normalised e) no_mask id) WQ WK WV X h) /\
  (exists W : weights F H.+1 P.+2 D.+1 dk.+1 dv.+1,
   forall L : mha_weights F N.+1 D.+1 (\sum_(h < H.+1) dv.+1),
   exists x, mha_layer L (repeated N.+1 x) <>
             iha_output (on_stack (normalised e) no_mask) W (repeated N.+1 x)).
Proof.
split=> [WQ WK WV | ].
  by exists (copies WQ WK WV (pick F ord0)) => X; apply: eq_mxrow => h; apply: inclusion_no_mask.
by apply/strictness/(@sees_two_token _ _ no_mask); exists 0.
Qed.

(** Theorem 2 with the token-causal mask. *)
Theorem theorem2_token_causal H P N D dk dv :
  (forall (WQ WK : 'I_H -> 'M[F]_(D, dk)) (WV : 'I_H -> 'M[F]_(D, dv)),
   exists W : weights F H P.+1 D dk dv, forall X : 'M_(N, D),
   iha_output (on_stack (normalised e) token_causal) W X =
   \mxrow_(h < H) mha (rowwise (normalised e) causal id) WQ WK WV X h) /\
  (exists W : weights F H.+1 P.+2 D.+1 dk.+1 dv.+1,
   forall L : mha_weights F N.+1 D.+1 (\sum_(h < H.+1) dv.+1),
   exists x, mha_layer L (repeated N.+1 x) <>
             iha_output (on_stack (normalised e) token_causal) W (repeated N.+1 x)).
Proof.
split=> [WQ WK WV | ].
  by exists (copies WQ WK WV (pick F ord0)) => X; apply: eq_mxrow => h; apply: inclusion_token_causal.
by apply/strictness/(@sees_two_token _ _ causal); exists 0.
Qed.

(** Theorem 2 with the flat-causal mask: the inclusion reads the last
    pseudo-head, and the separation needs two tokens. *)
Theorem theorem2_flat_causal H P N D dk dv :
  (forall (WQ WK : 'I_H -> 'M[F]_(D, dk)) (WV : 'I_H -> 'M[F]_(D, dv)),
   exists W : weights F H P.+1 D dk dv, forall X : 'M_(N, D),
   iha_output (on_stack (normalised e) flat_causal) W X =
   \mxrow_(h < H) mha (rowwise (normalised e) causal id) WQ WK WV X h) /\
  (exists W : weights F H.+1 P.+2 D.+1 dk.+1 dv.+1,
   forall L : mha_weights F N.+2 D.+1 (\sum_(h < H.+1) dv.+1),
   exists x, mha_layer L (repeated N.+2 x) <>
             iha_output (on_stack (normalised e) flat_causal) W (repeated N.+2 x)).
Proof.
split=> [WQ WK WV | ].
  by exists (copies WQ WK WV (pick F ord_max)) => X; apply: eq_mxrow => h; apply: inclusion_flat_last.
exact/strictness/sees_two_flat.
Qed.
End Theorem2.

(* ------------------------------------------------------------------------ *)
(** * A concrete instance over the rationals *)

(* A positive, strictly increasing e with e(s) e(-s) = 1, as exp has:         *)
(* e(1) = 2, e(-1) = 1/2, e(4) = 5, e(-4) = 1/5.                              *)
Definition ramp (s : rat) : rat := if 0 <= s then 1 + s else (1 - s)^-1.

Lemma ramp_gt0 s : 0 < ramp s.
Proof.
rewrite /ramp; case: ifP => [s_ge0 | /negbT]; first exact: ltr_paddr.
by rewrite -ltNge => s_lt0; rewrite invr_gt0 subr_gt0 (lt_trans s_lt0).
Qed.

Lemma ramp_incr : {homo ramp : s t / s < t}.
Proof.
move=> s t lt_st; rewrite /ramp; case: ifPn => [s_ge0 | ].
  by rewrite (le_trans s_ge0 (ltW lt_st)) /= ltr_add2l.
rewrite -ltNge => s_lt0; case: ifPn => [t_ge0 | ].
  apply: lt_le_trans (_ : 1 <= _); last by rewrite ler_addl.
  by rewrite invf_lt1 ?ltr_addl ?oppr_gt0 // ltr_spaddr ?oppr_gt0.
rewrite -ltNge => t_lt0; have pos u : u < 0 -> 0 < 1 - u :> rat.
  by move=> u_lt0; rewrite subr_gt0 (lt_trans u_lt0).
by rewrite ltf_pinv ?posrE ?pos // ltr_add2l ltr_opp2.
Qed.

(** P = 2, H = 1, one token with one feature, all base weights one, e = ramp,
    no mask: the corrected example maps x = 1 to 3/5 and x = 1 + 1 to 24/13,
    not to 6/5; the printed one maps them to 1 and 2. *)
Theorem separation_rat (one := fun _ : 'I_1 => 1%:M : 'M[rat]_1)
    (out := fun W x => iha (on_stack (normalised ramp) no_mask) W (repeated 1 x) 0 0 0) :
  [/\ out (corrected one one one 1) 1 = 3%:R / 5%:R,
      out (corrected one one one 1) (1 + 1) = 24%:R / 13%:R,
      out (printed one one one 1) 1 = 1 &
      out (printed one one one 1) (1 + 1) = 2%:R].
Proof.
have sees n : exists n', (no_mask : rel 'I_1) n n' by exists 0.
have self x : self_score one one x 0 = x 0 0 ^+ 2.
  by rewrite /self_score !mulmx1 mxE big_ord1 mxE.
have corr x : out (corrected one one one 1) x =
    (ramp (x 0 0 ^+ 2) - ramp (- x 0 0 ^+ 2)) / (ramp (x 0 0 ^+ 2) + ramp (- x 0 0 ^+ 2)) * x 0 0.
  rewrite /out (corrected_token _ _ _ _ _ (visible := no_mask)) //.
  by rewrite repeatedE mxE self mulmx1.
have print x : out (printed one one one 1) x = x 0 0.
  by rewrite /out printed_is_identity ?mulmx1 ?repeatedE // => [|p]; [apply: ramp_gt0 | exists p].
by split; rewrite ?corr ?print !mxE.
Qed.
