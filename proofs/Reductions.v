(* Linear IHA is multi-head attention with an output projection (the three    *)
(* reductions on which the lower bounds rest), over any commutative ring.     *)
(*                                                                            *)
(* The input X has N rows; nothing is assumed about its columns, so positions *)
(* given as one-hot columns are included.                                     *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * Linear MHA with an output projection *)

(* The heads, indexed by a finite type T, are concatenated and multiplied by  *)
(* one matrix, whose block of rows for head t is WO t.                        *)
Definition projected_mha (R : comRingType) (T : finType) N D dk dv e
    (WQ WK : T -> 'M[R]_(D, dk)) (WV : T -> 'M[R]_(D, dv))
    (WO : T -> 'M[R]_(dv, e)) (X : 'M[R]_(N, D)) : 'M[R]_(N, e) :=
  \sum_t mha id WQ WK WV X t *m WO t.

(* For heads 0, ..., H-1 that is the concatenation times the stacked blocks.  *)
Lemma projected_mha_concat (R : comRingType) H N D dk dv e
    (WQ WK : 'I_H -> 'M[R]_(D, dk)) (WV : 'I_H -> 'M[R]_(D, dv))
    (WO : 'I_H -> 'M[R]_(dv, e)) (X : 'M[R]_(N, D)) :
  projected_mha WQ WK WV WO X =
  \mxrow_(h < H) mha id WQ WK WV X h *m \mxcol_(h < H) WO h.
Proof. by rewrite mul_mxrow_mxcol. Qed.

(* A projection after a sum over h of projected layers with the same heads is *)
(* one projection.                                                            *)
Lemma sum_projected_mha (R : comRingType) (T : finType) H N D dk dv e f
    (WQ WK : T -> 'M[R]_(D, dk)) (WV : T -> 'M[R]_(D, dv))
    (WO : 'I_H -> T -> 'M[R]_(dv, e)) (O : 'I_H -> 'M[R]_(e, f)) (X : 'M[R]_(N, D)) :
  \sum_h projected_mha WQ WK WV (WO h) X *m O h =
  projected_mha WQ WK WV (fun t => \sum_h WO h t *m O h) X.
Proof.
rewrite /projected_mha; under eq_bigr do rewrite mulmx_suml.
rewrite exchange_big /=; apply: eq_bigr => t _; rewrite mulmx_sumr.
by apply: eq_bigr => h _; rewrite mulmxA.
Qed.

(* ------------------------------------------------------------------------ *)
(** * The three reductions *)

Section Reductions.
Variables (R : comRingType) (H P N D dk dv : nat) (W : weights R H P D dk dv).
Implicit Types (X : 'M[R]_(N, D)) (h : 'I_H).

Let mixed_q h j := mix (alpha_q W) (w_q W) h j.
Let mixed_k h j := mix (alpha_k W) (w_k W) h j.
Let mixed_v h j := mix (alpha_v W) (w_v W) h j.

Lemma iha_linear_mixed X h :
  iha id W X h = \sum_h' \sum_j \sum_j' collapse W h h' j *:
    ((X *m mixed_q h' j) *m (X *m mixed_k h' j')^T *m (X *m mixed_v h' j')).
Proof.
rewrite iha_linear; do 3 (apply: eq_bigr => ? _).
by rewrite /pseudo_q /pseudo_k /pseudo_v !pseudo_mix.
Qed.

(* H P^2 heads: head (h', j, j') has the mixed query (h', j), the mixed key   *)
(* and value (h', j').                                                        *)
Definition heads_hpp := [finType of 'I_H * 'I_P * 'I_P].
Definition q_hpp (t : heads_hpp) := mixed_q t.1.1 t.1.2.
Definition k_hpp (t : heads_hpp) := mixed_k t.1.1 t.2.
Definition v_hpp (t : heads_hpp) := mixed_v t.1.1 t.2.
Definition o_hpp h (t : heads_hpp) : 'M[R]_dv := (collapse W h t.1.1 t.1.2)%:M.

(** Linear IHA with H heads and P pseudo-heads is linear MHA with H P^2 heads
    and an output projection.  The heads are the same for every output h. *)
Theorem iha_is_mha_hpp X h :
  iha id W X h = projected_mha q_hpp k_hpp v_hpp (o_hpp h) X.
Proof.
rewrite iha_linear_mixed /projected_mha.
pose G h' j j' := mha id q_hpp k_hpp v_hpp X (h', j, j') *m o_hpp h (h', j, j').
rewrite (eq_bigr (fun t => G t.1.1 t.1.2 t.2)); last by do 2 case.
rewrite -(pair_bigA _ (fun (q : 'I_H * 'I_P) j' => G q.1 q.2 j')) /=.
rewrite -(pair_bigA _ (fun h' j => \sum_j' G h' j j')) /=.
by do 3 (apply: eq_bigr => ? _); rewrite /G mul_mx_scalar.
Qed.

(* H^2 heads: head (m, m') has base query m and base key m', and its value is *)
(* the input itself.                                                          *)
Definition heads_hh := [finType of 'I_H * 'I_H].
Definition q_hh (t : heads_hh) := w_q W t.1.
Definition k_hh (t : heads_hh) := w_k W t.2.
Definition v_hh (t : heads_hh) : 'M[R]_D := 1%:M.
Definition o_hh h (t : heads_hh) : 'M[R]_(D, dv) :=
  \sum_h' \sum_j \sum_j'
    (collapse W h h' j * alpha_q W t.1 h' j * alpha_k W t.2 h' j') *: mixed_v h' j'.

(** Linear IHA with H heads, whatever P, is linear MHA with H^2 heads and an
    output projection.  The heads are the same for every output h. *)
Theorem iha_is_mha_hh X h :
  iha id W X h = projected_mha q_hh k_hh v_hh (o_hh h) X.
Proof.
rewrite iha_linear_mixed /projected_mha.
pose G (t : heads_hh) := (X *m q_hh t) *m (X *m k_hh t)^T *m X.
pose F t h' j j' := (collapse W h h' j * alpha_q W t.1 h' j * alpha_k W t.2 h' j') *:
  (G t *m mixed_v h' j').
transitivity (\sum_h' \sum_j \sum_j' \sum_t F t h' j j').
  apply: eq_bigr => h' _; apply: eq_bigr => j _; apply: eq_bigr => j' _.
  rewrite (eq_bigr (fun t => F (t.1, t.2) h' j j')); last by case.
  rewrite -(pair_bigA _ (fun m m' => F (m, m') h' j j')) /= /F /G /=.
  rewrite [X *m mixed_q _ _]mulmx_sumr !mulmx_suml scaler_sumr; apply: eq_bigr => m _.
  rewrite [X *m mixed_k _ _]mulmx_sumr raddf_sum /= mulmx_sumr mulmx_suml scaler_sumr.
  apply: eq_bigr => m' _.
  by rewrite -[in RHS]mulmxA -!scalemxAr linearZ /= -scalemxAr -!scalemxAl !scalerA mulrAC.
transitivity (\sum_h' \sum_j \sum_t \sum_j' F t h' j j').
  by do 2 (apply: eq_bigr => ? _); rewrite exchange_big.
transitivity (\sum_h' \sum_t \sum_j \sum_j' F t h' j j').
  by apply: eq_bigr => h' _; rewrite exchange_big.
rewrite exchange_big /=; apply: eq_bigr => t _.
rewrite /mha /attention mulmx1 /o_hh mulmx_sumr; apply: eq_bigr => h' _.
rewrite mulmx_sumr; apply: eq_bigr => j _; rewrite mulmx_sumr; apply: eq_bigr => j' _.
by rewrite /F -scalemxAr.
Qed.

(* H heads for the output of one head h: head m has the base value m, and its *)
(* query is the sum of the mixed products Q K^T, with key the identity.       *)
Definition q_h h (m : 'I_H) : 'M[R]_D :=
  \sum_h' \sum_j \sum_j' (collapse W h h' j * alpha_v W m h' j') *:
    (mixed_q h' j *m (mixed_k h' j')^T).
Definition k_h (m : 'I_H) : 'M[R]_D := 1%:M.

(** One output of linear IHA with H heads, whatever P, is the sum of H linear
    heads (with D columns of queries and keys), other ones for each output. *)
Theorem iha_output_is_mha_h X h :
  iha id W X h = \sum_m mha id (q_h h) k_h (w_v W) X m.
Proof.
rewrite iha_linear_mixed.
pose F h' j j' m := (collapse W h h' j * alpha_v W m h' j') *:
   (X *m (mixed_q h' j *m (mixed_k h' j')^T) *m X^T *m (X *m w_v W m)).
transitivity (\sum_h' \sum_j \sum_j' \sum_m F h' j j' m).
  apply: eq_bigr => h' _; apply: eq_bigr => j _; apply: eq_bigr => j' _.
  rewrite [X *m mixed_v h' j']mulmx_sumr mulmx_sumr scaler_sumr; apply: eq_bigr => m _.
  by rewrite -!scalemxAr scalerA /F trmx_mul !mulmxA.
transitivity (\sum_h' \sum_j \sum_m \sum_j' F h' j j' m).
  by do 2 (apply: eq_bigr => ? _); rewrite exchange_big.
transitivity (\sum_h' \sum_m \sum_j \sum_j' F h' j j' m).
  by apply: eq_bigr => h' _; rewrite exchange_big.
rewrite exchange_big /=; apply: eq_bigr => m _.
rewrite /mha /attention mulmx1 /q_h mulmx_sumr !mulmx_suml; apply: eq_bigr => h' _.
rewrite mulmx_sumr !mulmx_suml; apply: eq_bigr => j _.
rewrite mulmx_sumr !mulmx_suml; apply: eq_bigr => j' _.
by rewrite /F -scalemxAr -!scalemxAl.
Qed.
End Reductions.
