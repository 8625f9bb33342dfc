(* Theorem 2, the example that separates IHA from MHA on repeated tokens: as  *)
(* printed (signs +,- on queries and keys, +,+ on values) it separates        *)
(* nothing; corrected (signs +,- on values too) it is tanh-like.  Zero mixing *)
(* coefficients do not deactivate a pseudo-head.                              *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem2_Inclusion Theorem2_Strictness.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * The example of the paper, and its correction *)

Section Example.
Variables (F : realFieldType) (e : F -> F) (H N D dk dv : nat).
Variables (WQ WK : 'I_H -> 'M[F]_(D, dk)) (WV : 'I_H -> 'M[F]_(D, dv)).
Implicit Types (x : 'rV[F]_D) (h : 'I_H).

(* The score of the token x against itself in head h of MHA.                  *)
Definition self_score x h : F := ((x *m WQ h) *m (x *m WK h)^T) 0 0.

Lemma logit_own P sq sk sv r x h (j j' : 'I_P) :
  logit (own_heads WQ WK WV sq sk sv r) x h j j' = sq j * sk j' * self_score x h.
Proof.
rewrite /logit [pseudo_q _ _ _ _]pseudo_own [pseudo_k _ _ _ _]pseudo_own.
by rewrite linearZ /= -scalemxAl -scalemxAr scalerA mxE.
Qed.

Lemma pseudo_output_own P sq sk sv r mask x h (j : 'I_P) n c :
  pseudo_output (on_stack (normalised e) mask) (own_heads WQ WK WV sq sk sv r) (repeated N x) h j n c =
  (\sum_j' (seen mask j n j')%:R * e (sq j * sk j' * self_score x h) * sv j')
  / (\sum_j' (seen mask j n j')%:R * e (sq j * sk j' * self_score x h)) * (x *m WV h) 0 c.
Proof.
rewrite pseudo_output_repeated [RHS]mulrAC [in RHS]mulr_suml.
congr (_ / _); apply: eq_bigr => j' _; rewrite logit_own //.
by rewrite [pseudo_v _ _ _ _]pseudo_own mxE !mulrA.
Qed.

(* The signs +,- (+,-,- and so on for more than two pseudo-heads).            *)
Definition sign P (j : 'I_P) : F := if j == 0%N :> nat then 1 else -1.

(* The example as printed: signs +,- on queries and keys, +,+ on values; the  *)
(* collapse reads the first pseudo-head.  Its correction: +,- on values too.  *)
Definition printed P := own_heads WQ WK WV (@sign P.+1) (@sign P.+1) (fun=> 1) (pick F ord0).
Definition corrected P := own_heads WQ WK WV (@sign P.+1) (@sign P.+1) (@sign P.+1) (pick F ord0).

Lemma seen_gt0 P (mask : rel ('I_P * 'I_N)) j n u :
  mask (j, n) u -> (0 < seen mask j n u.1)%N.
Proof. by move=> sees; apply/card_gt0P; exists u.2; rewrite inE -surjective_pairing. Qed.

Hypothesis e_gt0 : forall s, 0 < e s.

(** The printed example (P = 2 there) is the identity on values on repeated
    tokens, under every mask that lets each virtual token see one: a convex
    combination of equal rows. *)
Theorem printed_is_identity P (mask : rel ('I_P.+1 * 'I_N)) x h :
  (forall p, exists u, mask p u) ->
  iha (on_stack (normalised e) mask) (printed P) (repeated N x) h = repeated N (x *m WV h).
Proof.
move=> sees; rewrite iha_own_pick; apply/matrixP => n c.
rewrite pseudo_output_own repeatedE; under eq_bigr do rewrite mulr1.
rewrite divff ?mul1r //; have [u see_u] := sees (ord0, n); apply: lt0r_neq0.
rewrite (bigD1 u.1) //= ltr_paddr //.
  by apply: sumr_ge0 => j _; rewrite mulr_ge0 ?ler0n // ltW.
by rewrite mulr_gt0 // ltr0n; apply: (seen_gt0 see_u).
Qed.

(** So there it is the MHA with the same base weights, and separates nothing. *)
Corollary printed_is_mha P (mask : rel ('I_P.+1 * 'I_N)) (visible : rel 'I_N) x h :
  (forall p, exists u, mask p u) -> (forall n, exists n', visible n n') ->
  iha (on_stack (normalised e) mask) (printed P) (repeated N x) h =
  mha (rowwise (normalised e) visible id) WQ WK WV (repeated N x) h.
Proof.
move=> sees ?; rewrite printed_is_identity // mha_repeated //.
exact: normalised_averages.
Qed.

(* The corrected example under any mask: a copies of the first pseudo-key and *)
(* b of the others are seen.                                                  *)
Lemma corrected_row P (mask : rel ('I_P.+1 * 'I_N)) x h n c
    (s := self_score x h) (a := (seen mask ord0 n ord0)%:R)
    (b := \sum_(j | j != ord0) (seen mask ord0 n j)%:R) :
  iha (on_stack (normalised e) mask) (corrected P) (repeated N x) h n c =
  (a * e s - b * e (- s)) / (a * e s + b * e (- s)) * (x *m WV h) 0 c.
Proof.
rewrite iha_own_pick pseudo_output_own -/s (bigD1 ord0) //= [X in _ / X](bigD1 ord0) //=.
rewrite /sign /= !mul1r mulr1 -/a; congr ((_ + _) / (_ + _) * _); rewrite mulr_suml -?sumrN.
  by apply: eq_bigr => j; rewrite -val_eqE /= => /negbTE ->; rewrite mul1r mulN1r mulrN1.
by apply: eq_bigr => j; rewrite -val_eqE /= => /negbTE ->; rewrite mul1r mulN1r.
Qed.

(** The corrected example (P = 2), without a mask, with the token-causal one or
    any other on tokens: (e(s) - e(-s)) / (e(s) + e(-s)) times the value, where
    s is the score of the token against itself; for e = exp this is
    tanh(s) x W_V. *)
Theorem corrected_token (visible : rel 'I_N) x h (s := self_score x h) :
  (forall n, exists n', visible n n') ->
  iha (on_stack (normalised e) (fun p u => visible p.2 u.2)) (corrected 1) (repeated N x) h =
  repeated N ((e s - e (- s)) / (e s + e (- s)) *: (x *m WV h)).
Proof.
move=> sees; rewrite iha_own_pick; apply/matrixP => n c; rewrite repeatedE [RHS]mxE.
rewrite (@pseudo_output_repeated_token _ _ _ _ _ _ _ _ visible) //.
rewrite !big_ord_recl !big_ord0 !logit_own /= !addr0 -/s.
rewrite [pseudo_v _ _ _ _]pseudo_own [pseudo_v _ _ _ _]pseudo_own /sign /=.
rewrite !mul1r mulN1r scale1r scaleN1r [(- (x *m _)) _ _]mxE.
by rewrite mulrN -mulrBl mulrAC.
Qed.

(** The corrected example under the flat mask: at token n (counted from 0) there
    are n + 1 copies of the first pseudo-key and n of the second. *)
Theorem corrected_flat x h n c (s := self_score x h) :
  iha (on_stack (normalised e) flat_causal) (corrected 1) (repeated N x) h n c =
  (n.+1%:R * e s - n%:R * e (- s)) / (n.+1%:R * e s + n%:R * e (- s)) * (x *m WV h) 0 c.
Proof.
rewrite corrected_row big_mkcond !big_ord_recl big_ord0 /= !seen_flat /=.
by rewrite add0r addr0 addn1 addn0.
Qed.

(** For an even e the corrected example is zero on repeated tokens, so that
    some hypothesis on e besides positivity is needed. *)
Corollary corrected_even (visible : rel 'I_N) x h :
  (forall s, e (- s) = e s) -> (forall n, exists n', visible n n') ->
  iha (on_stack (normalised e) (fun p u => visible p.2 u.2)) (corrected 1) (repeated N x) h = 0.
Proof.
by move=> even sees; rewrite corrected_token // even subrr mul0r scale0r /repeated mulmx0.
Qed.

(* Three pseudo-heads, the third with zero mixing.                            *)
Definition third_zero (j : 'I_3) : F := nth 0 [:: 1; -1; 0] j.
Definition zero_mixing :=
  own_heads WQ WK WV third_zero third_zero third_zero (pick F ord0).

(** Zero mixing coefficients do not deactivate a pseudo-head: its keys score 0,
    and e(0) stays in the denominator. *)
Theorem zero_mixing_stays (visible : rel 'I_N) x h (s := self_score x h) :
  (forall n, exists n', visible n n') ->
  iha (on_stack (normalised e) (fun p u => visible p.2 u.2)) zero_mixing (repeated N x) h =
  repeated N ((e s - e (- s)) / (e s + e (- s) + e 0) *: (x *m WV h)).
Proof.
move=> sees; rewrite iha_own_pick; apply/matrixP => n c; rewrite repeatedE [RHS]mxE.
rewrite (@pseudo_output_repeated_token _ _ _ _ _ _ _ _ visible) //.
rewrite !big_ord_recl !big_ord0 !logit_own /= !addr0 -/s.
do 3 rewrite [pseudo_v _ _ _ _]pseudo_own; rewrite /third_zero /=.
rewrite !mul1r mulN1r mul0r scale1r scaleN1r scale0r [(- (x *m _)) _ _]mxE [(0 : 'M__) _ _]mxE.
by rewrite mulr0 addr0 mulrN -mulrBl mulrAC addrA.
Qed.
End Example.

(* ------------------------------------------------------------------------ *)
(** * Increasing score functions *)

Section Increasing.
Variables (F : realFieldType) (e : F -> F).
Hypothesis e_gt0 : forall s, 0 < e s.

Lemma ratio_inj (A B C D : F) : A + B != 0 -> C + D != 0 ->
  (A - B) / (A + B) = (C - D) / (C + D) -> A * D = B * C.
Proof.
have ratioE X Y : X + Y != 0 -> (X - Y) / (X + Y) = 1 - 2%:R * Y / (X + Y) :> F.
  move=> n0; apply: (mulIf n0); rewrite [RHS]mulrBl !mulfVK // mul1r.
  by rewrite mulr_natl mulr2n opprD addrA addrK.
move=> AB CD; rewrite !ratioE // => /addrI /oppr_inj; rewrite -!mulrA => /mulfI.
rewrite pnatr_eq0 => /(_ isT) /eqP; rewrite eqr_div // => /eqP.
by rewrite !mulrDr [D * B]mulrC => /addIr ->; rewrite mulrC.
Qed.

Lemma row_neq0 n (v : 'rV[F]_n) : v != 0 -> exists c, v 0 c != 0.
Proof.
move=> v_neq0; apply/existsP; apply: contraR v_neq0 => /existsPn v0.
by apply/eqP/rowP => c; rewrite [RHS]mxE; apply/eqP; move: (v0 c); rewrite negbK.
Qed.

(** Zero mixing gives another function of the token than two pseudo-heads, at
    each token whose scores s and -s are told apart and whose value is not 0. *)
Theorem zero_mixing_differs H N D dk dv (WQ WK : 'I_H -> 'M[F]_(D, dk))
    (WV : 'I_H -> 'M[F]_(D, dv)) (visible : rel 'I_N.+1) (x : 'rV[F]_D) h
    (s := self_score WQ WK x h) :
  (forall n, exists n', visible n n') -> e s != e (- s) -> x *m WV h != 0 ->
  iha (on_stack (normalised e) (fun p u => visible p.2 u.2)) (zero_mixing WQ WK WV)
    (repeated N.+1 x) h <>
  iha (on_stack (normalised e) (fun p u => visible p.2 u.2)) (corrected WQ WK WV 1)
    (repeated N.+1 x) h.
Proof.
move=> sees neq_e v_neq0; rewrite zero_mixing_stays // corrected_token // -/s => eq_out.
have [c vc] := row_neq0 v_neq0.
have := congr1 (fun O : 'M_(_, _) => O 0 c) eq_out; rewrite !repeatedE mxE [RHS]mxE.
move/(mulIf vc)/(mulfI _); rewrite subr_eq0 neq_e => /(_ isT) /invr_inj.
by rewrite -[RHS]addr0 => /addrI e0; move: (e_gt0 0); rewrite e0 ltxx.
Qed.

Hypothesis e_incr : {homo e : s t / s < t}.

(* (a e(s) - b e(-s)) / (a e(s) + b e(-s)) takes a value once.                *)
Lemma ratio_neq a b s t : 0 < a -> 0 < b -> s != t ->
  (a * e s - b * e (- s)) / (a * e s + b * e (- s)) <>
  (a * e t - b * e (- t)) / (a * e t + b * e (- t)).
Proof.
move=> a_gt0 b_gt0; wlog: s t / s < t => [wlog_lt | lt_st _].
  case: (ltgtP s t) => // [lt_st | lt_ts] _; last apply/nesym.
    by apply: wlog_lt; rewrite ?lt_eqF.
  by apply: wlog_lt; rewrite ?lt_eqF.
have pos u : 0 < a * e u /\ 0 < b * e (- u) by split; apply: mulr_gt0.
have [[as_gt0 bs_gt0] [at_gt0 bt_gt0]] := (pos s, pos t).
move/ratio_inj; rewrite !lt0r_neq0 ?addr_gt0 // => /(_ isT isT) /eqP.
rewrite mulrACA [b * _ * _]mulrACA [b * a]mulrC lt_eqF //.
rewrite ltr_pmul2l ?mulr_gt0 // mulrC ltr_pmul ?ltW //; apply: e_incr => //.
by rewrite ltr_opp2.
Qed.

(* ------------------------------------------------------------------------ *)
(** * When the corrected example is not linear *)

Section Criterion.
Variables (H N D dk dv : nat) (WQ WK : 'I_H -> 'M[F]_(D, dk)) (WV : 'I_H -> 'M[F]_(D, dv)).
Variables (visible : rel 'I_N.+1) (h : 'I_H).
Hypothesis sees : forall n, exists n', visible n n'.
Implicit Types x y : 'rV[F]_D.

Let B := WQ h *m (WK h)^T.
Let q x := self_score WQ WK x h.
Let f x := iha (on_stack (normalised e) (fun p u => visible p.2 u.2)) (corrected WQ WK WV 1)
             (repeated N.+1 x) h.

Let form x y : F := (x *m B *m y^T) 0 0.

Let qE x : q x = form x x.
Proof. by rewrite /q /self_score /form /B trmx_mul !mulmxA. Qed.

Let form_addl x y z : form (x + y) z = form x z + form y z.
Proof. by rewrite /form !mulmxDl mxE. Qed.

Let form_addr x y z : form x (y + z) = form x y + form x z.
Proof. by rewrite /form linearD /= mulmxDr mxE. Qed.

Let q_add x y : q (x + y) = q x + q y + (form x y + form y x).
Proof. by rewrite !qE form_addl !form_addr [form y x + _]addrC addrACA. Qed.

Let q_sum_diff x y : q (x + y) + q (x - y) = (q x + q y) *+ 2.
Proof.
have form_opp z : form z (- y) = - form z y by rewrite /form linearN /= mulmxN mxE.
have opp_form z : form (- y) z = - form y z by rewrite /form !mulNmx mxE.
rewrite !q_add [q (- y)]qE form_opp opp_form opprK -qE form_opp opp_form -opprD.
by rewrite addrACA subrr addr0 mulr2n.
Qed.

(* The form q vanishes exactly when its matrix is antisymmetric.              *)
Lemma self_score_eq0 : (forall x, q x = 0) <-> B^T = - B.
Proof.
have entry i j : form (delta_mx 0 i) (delta_mx 0 j) = B i j.
  by rewrite /form trmx_delta -rowE -colE !mxE.
split=> [q0 | anti x].
  apply/matrixP => i j; rewrite [LHS]mxE [RHS]mxE -!entry; apply/eqP; rewrite -addr_eq0 addrC.
  by have := q_add (delta_mx 0 i) (delta_mx 0 j); rewrite !q0 !add0r => <-.
have /eqP : q x = - q x.
  have {1}-> : q x = (x *m B *m x^T)^T 0 0 by rewrite [RHS]mxE qE.
  by rewrite 2!trmx_mul trmxK anti mulNmx mulmxN mulmxA [LHS]mxE qE.
by rewrite -addr_eq0 -mulr2n mulrn_eq0 => /eqP.
Qed.

Let fE x : f x = repeated N.+1 ((e (q x) - e (- q x)) / (e (q x) + e (- q x)) *: (x *m WV h)).
Proof. exact: corrected_token. Qed.

(* An additive output has self-score zero wherever its value is not zero.     *)
Let additive_q x : (forall x y, f (x + y) = f x + f y) -> x *m WV h != 0 -> q x = 0.
Proof.
move=> add /row_neq0[c xc]; apply/eqP; apply: contraT => qx.
pose g s := (1 * e s - 1 * e (- s)) / (1 * e s + 1 * e (- s)).
have entry z : f z 0 c = g (q z) * (z *m WV h) 0 c by rewrite fE repeatedE mxE /g !mul1r.
have /(congr1 (fun O : 'M_(_, _) => O 0 c)) := add x x.
have -> : f (x + x) 0 c = g (q (x + x)) * ((x *m WV h) 0 c *+ 2) by rewrite entry mulmxDl mxE.
have v_neq0 : (x *m WV h) 0 c *+ 2 != 0 by rewrite mulrn_eq0.
rewrite [RHS]mxE entry -[RHS]mulr2n -mulrnAr => /(mulIf v_neq0) g_eq.
have q4 : q (x + x) = q x *+ 4 by rewrite q_add -!qE -!mulr2n -mulrnA.
have q_neq : q (x + x) != q x by rewrite q4 mulrS addrC -subr_eq0 addrK mulrn_eq0.
by case: (ratio_neq ltr01 ltr01 q_neq g_eq).
Qed.

Lemma corrected_additive_criterion :
  (forall x y, f (x + y) = f x + f y) <->
  WV h = 0 \/ (WQ h *m (WK h)^T)^T = - (WQ h *m (WK h)^T).
Proof.
split=> [add | [WV0 | /self_score_eq0 q0] x y]; last first.
- by rewrite !fE !q0 oppr0 subrr mul0r !scale0r /repeated mulmx0 addr0.
- by rewrite !fE WV0 !mulmx0 !scaler0 /repeated mulmx0 addr0.
have [-> | WV_neq0] := eqVneq (WV h) 0; [by left | right; apply/self_score_eq0 => x].
have /matrix0Pn[i [j WVij]] := WV_neq0; pose y : 'rV[F]_D := delta_mx 0 i.
have y_value : y *m WV h != 0.
  by apply: contraNneq WVij => /(congr1 (fun O : 'M_(_, _) => O 0 j)); rewrite -rowE !mxE => ->.
have [x_value | x_value] := eqVneq (x *m WV h) 0; last exact: additive_q.
have qy : q y = 0 by apply: additive_q.
have qxy : q (x + y) = 0 by apply: additive_q => //; rewrite mulmxDl x_value add0r.
have qxNy : q (x - y) = 0.
  by apply: additive_q => //; rewrite mulmxBl x_value add0r oppr_eq0.
have /eqP := q_sum_diff x y.
by rewrite qxy qxNy qy !addr0 eq_sym mulrn_eq0 => /eqP.
Qed.
End Criterion.

(** The corrected example (P = 2), for a positive, strictly increasing e and any
    mask on tokens, is additive on repeated tokens exactly when W_V = 0 or
    W_Q W_K^T is antisymmetric. *)
Theorem corrected_additive_iff H N D dk dv (WQ WK : 'I_H -> 'M[F]_(D, dk))
    (WV : 'I_H -> 'M[F]_(D, dv)) (visible : rel 'I_N.+1) h :
  (forall n, exists n', visible n n') ->
  let f x := iha (on_stack (normalised e) (fun p u => visible p.2 u.2)) (corrected WQ WK WV 1)
               (repeated N.+1 x) h in
  (forall x y, f (x + y) = f x + f y) <->
  WV h = 0 \/ (WQ h *m (WK h)^T)^T = - (WQ h *m (WK h)^T).
Proof. exact: corrected_additive_criterion. Qed.
End Increasing.
