(* The weights of Theorems 2 and 4 as programs, each proved equal to its      *)
(* matrix form, field by field; those of Theorem 3 are in Computable.v.       *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem3 Computable Theorem4.
From IHA Require Import Theorem2_Inclusion Theorem2_Examples.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** What runs on a program's weights is the layer with the matrix form of them. *)
Theorem crun_same_weights (R : comRingType) H P N D dk dv (w : weighting R) cw cmask
    (c : cweights R) (W : weights R H P D dk dv) x (h : 'I_H) (n : 'I_N) (e : 'I_dv) :
  equivariant w -> @computes R P N w cw -> same_weights (of_c H P D dk dv c) W ->
  crun H P N D dk dv cw cmask c x h n e
  = iha (on_stack w (of_cmask cmask)) W (mat N D x) h n e.
Proof.
move=> w_eq w_cw same.
by rewrite -(iha_same_weights _ _ same) (@crunE _ _ _ _ _ _ _ w cw).
Qed.

(* ------------------------------------------------------------------------ *)
(** * MHA as IHA with one pseudo-head *)

Definition cmulti_head (R : ringType) (wq wk wv : nat -> nat -> nat -> R) : cweights R :=
  let same := fun m h (_ : nat) => (m == h)%:R in
  CWeights wq wk wv same same same (fun h h' _ => (h' == h)%:R).

Theorem cmulti_headE (R : comRingType) H D dk dv (wq wk wv : nat -> nat -> nat -> R) :
  same_weights (of_c H 1 D dk dv (cmulti_head wq wk wv))
    (multi_head (fun m : 'I_H => mat D dk (wq m)) (fun m : 'I_H => mat D dk (wk m))
                (fun m : 'I_H => mat D dv (wv m))).
Proof. by []. Qed.

(* ------------------------------------------------------------------------ *)
(** * Theorem 4: all cyclic shifts *)

Section Shifts.
Variables (F : realFieldType) (n : nat).
Implicit Types a x : nat -> nat -> F.
Local Notation N := n.+1.

Definition cshift (i j : nat) : F := (j == i.+1 %% N)%N%:R.

Lemma cshiftE : mat N N cshift = shift.
Proof. by apply/matrixP => i j; rewrite !mxE -val_eqE /= addn1. Qed.

(* W_Q^m = [0; A^(m H)], W_K^m = [0; (A^m)^T], W_V^m = H e_0 u_m^T.            *)
Definition cworkspace H a : cweights F :=
  CWeights (fun m => cbelow 1 (cpow N a (m * H)))
           (fun m => cbelow 1 (fun i j => cpow N a m j i))
           (fun m t e => H%:R * ((t == 0) && (e == m))%N%:R)
    (fun m h j => ((m == h) && (j == 0))%N%:R)
    (fun m _ j => (m == j)%:R) (fun m _ j => (m == j)%:R)
    (fun h h' j => ((h' == h) && (j == 0))%N%:R).

Definition ccyclic_shifts H : cweights F := cworkspace H cshift.

Theorem cworkspaceE H a :
  same_weights (of_c H H (1 + N) N H (cworkspace H a)) (workspace H (mat N N a)).
Proof.
split; split=> // m; rewrite /= ?cbelowE ?mat_cpow //.
  by congr (col_mx _ _); rewrite -mat_cpow; apply/matrixP => i j; rewrite !mxE.
by apply/matrixP => t e; rewrite !mxE; case: splitP => i ti; rewrite !mxE ti ?mulr0.
Qed.

Theorem ccyclic_shiftsE H :
  same_weights (of_c H H (1 + N) N H (ccyclic_shifts H)) (cyclic_shifts F n H).
Proof. by rewrite /cyclic_shifts -cshiftE; apply: cworkspaceE. Qed.

(* MHA, one head for each shift.                                              *)
Definition ccyclic_shifts_mha : cweights F :=
  cmulti_head (fun h => cbelow 1 (cpow N cshift h)) (fun=> cbelow 1 (@cone F))
              (fun _ t _ => (t == 0)%N%:R).

Theorem ccyclic_shifts_mhaE K :
  same_weights (of_c K 1 (1 + N) N 1 ccyclic_shifts_mha)
    (multi_head (@shift_head_q F n K) (@shift_head_k F n K) (@shift_head_v F n K)).
Proof.
split; split=> // m; rewrite /= ?cbelowE ?mat_cpow ?mat_cone ?cshiftE //.
apply/matrixP => t e; rewrite !mxE; case: splitP => i ti; rewrite mxE ti //.
by rewrite [i]ord1 [e]ord1.
Qed.

(** What the program prints for the weights of Theorem 4: column b of head h at
    token i is the token (i + h H + b) mod N; *)
Theorem ctheorem4 H x (h b : 'I_H) (i : 'I_N) :
  crun H H N (1 + N) N H (@chard F H N) cno_mask (ccyclic_shifts H) (ccode 1 x) h i b
  = x ((i + (h * H + b)) %% N)%N 0%N.
Proof.
rewrite (crun_same_weights _ _ _ _ _ (@hard_equivariant F) (@chardE H N F) (ccyclic_shiftsE H)).
by rewrite mat_ccode (theorem4_block (mat N 1 x)) mxE.
Qed.

(** and head h of MHA at token i is the token (i + h) mod N. *)
Theorem cmulti_head_shift K x (h : 'I_K) (i : 'I_N) :
  crun K 1 N (1 + N) N 1 (@chard F 1 N) cno_mask ccyclic_shifts_mha (ccode 1 x) h i 0
  = x ((i + h) %% N)%N 0%N.
Proof.
rewrite (@crun_same_weights _ _ _ _ _ _ _ _ _ _ _ _ _ h i ord0
          (@hard_equivariant F) (@chardE 1 N F) (ccyclic_shifts_mhaE K)).
rewrite mat_ccode (mha_is_iha _ _ _ no_mask _ _ (@hard_equivariant F)).
by rewrite multi_head_shift mxE.
Qed.
End Shifts.

(* ------------------------------------------------------------------------ *)
(** * Theorem 2: inclusion and the separating example *)

Section OwnHead.
Variables (F : realFieldType) (wq wk wv : nat -> nat -> nat -> F).
Implicit Types s r : nat -> F.

Definition cown s (m h j : nat) : F := (m == h)%:R * s j.
Definition cown_heads sq sk sv r : cweights F :=
  CWeights wq wk wv (cown sq) (cown sk) (cown sv) (fun h h' j => (h' == h)%:R * r j).

(* The four rows of factors in use.                                           *)
Definition cones (_ : nat) : F := 1.
Definition csign (j : nat) : F := if j == 0%N then 1 else -1.
Definition cthird_zero (j : nat) : F := nth 0 [:: 1; -1; 0] j.
Definition cpick (j0 j : nat) : F := (j == j0)%:R.
Definition cmean P (_ : nat) : F := P%:R^-1.

Definition ccopies r : cweights F := cown_heads cones cones cones r.
Definition cprinted : cweights F := cown_heads csign csign cones (cpick 0).
Definition ccorrected : cweights F := cown_heads csign csign csign (cpick 0).
Definition czero_mixing : cweights F :=
  cown_heads cthird_zero cthird_zero cthird_zero (cpick 0).

Variables (H D dk dv : nat).
Let WQ (m : 'I_H) := mat D dk (wq m).
Let WK (m : 'I_H) := mat D dk (wk m).
Let WV (m : 'I_H) := mat D dv (wv m).

Theorem ccopies_pickE P (j0 : 'I_P) :
  same_weights (of_c H P D dk dv (ccopies (cpick j0))) (copies WQ WK WV (pick F j0)).
Proof. by []. Qed.

Theorem ccopies_meanE P :
  same_weights (of_c H P D dk dv (ccopies (cmean P))) (copies WQ WK WV (@mean F P)).
Proof. by []. Qed.

Theorem cprintedE P :
  same_weights (of_c H P.+1 D dk dv cprinted) (printed WQ WK WV P).
Proof. by []. Qed.

Theorem ccorrectedE P :
  same_weights (of_c H P.+1 D dk dv ccorrected) (corrected WQ WK WV P).
Proof. by []. Qed.

Theorem czero_mixingE :
  same_weights (of_c H 3 D dk dv czero_mixing) (zero_mixing WQ WK WV).
Proof. by []. Qed.
End OwnHead.
