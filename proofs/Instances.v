(* Small instances, evaluated by Coq's virtual machine and printed, so that a *)
(* test can compare them entry by entry with the arrays of the Python side.   *)
(*                                                                            *)
(* Every instance is one Eval; its value is a list of strings.  No string     *)
(* contains a quotation mark, so a reader of the printed text takes whatever  *)
(* stands between two of them.  A string is one of                            *)
(*   INSTANCE sizes H=2 P=2 N=2 D=3 dk=2 dv=2 ATTENTION MASK                  *)
(*   INSTANCE ARRAY [[...],...]                                               *)
(* where ATTENTION is linear, hard or base2 (scores s weigh 2^s over the sum  *)
(* of their row), MASK is none, token or flat, and ARRAY one of               *)
(*   w_q w_k w_v              [source][model][column]                         *)
(*   alpha_q alpha_k alpha_v  [source][head][pseudo]                          *)
(*   collapse                 [out][head][pseudo]                             *)
(*   x                        [token][model]                                  *)
(*   output                   [head][token][value]                            *)
(*   bank                     [token][column], column i d + f being feature f *)
(*                            of A^i X (Theorem 3 only)                       *)
(*   columns                  [token][column], the heads side by side, as     *)
(*                            many columns as the bank                        *)
(* Entries are integers or fractions p/q in lowest terms.                     *)
From Coq Require Import String DecimalString.
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem3 Computable Computable24.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * Printing *)

Section Printing.
Local Open Scope string_scope.

Definition show_nat (n : nat) : string := NilZero.string_of_uint (Nat.to_uint n).
Definition show_int (z : int) : string :=
  match z with Posz n => show_nat n | Negz n => "-" ++ show_nat n.+1 end.
Definition show_rat (q : rat) : string :=
  if denq q == 1 then show_int (numq q) else show_int (numq q) ++ "/" ++ show_int (denq q).

Definition show_list (s : seq string) : string := "[" ++ concat "," s ++ "]".
Definition tabulate n (f : nat -> string) : string := show_list [seq f i | i <- iota 0 n].

Variables (R : comRingType) (show : R -> string).
Definition show2 m n (a : nat -> nat -> R) : string :=
  tabulate m (fun i => tabulate n (fun j => show (a i j))).
Definition show3 l m n (a : nat -> nat -> nat -> R) : string :=
  tabulate l (fun i => show2 m n (a i)).

(* A layer, its input, and how it attends.                                    *)
Record instance := Instance {
  name : string; heads : nat; pseudo_heads : nat; tokens : nat; model : nat;
  key : nat; value : nat; attention_name : string; mask_name : string;
  attends : cweighting R; masked : nat -> nat -> nat -> nat -> bool;
  layer : cweights R; input : nat -> nat -> R }.

Definition output (I : instance) : nat -> nat -> nat -> R :=
  crun (heads I) (pseudo_heads I) (tokens I) (model I) (key I) (value I) (attends I)
       (masked I) (layer I) (input I).

Definition sizes (I : instance) : string :=
  "H=" ++ show_nat (heads I) ++ " P=" ++ show_nat (pseudo_heads I) ++
  " N=" ++ show_nat (tokens I) ++ " D=" ++ show_nat (model I) ++
  " dk=" ++ show_nat (key I) ++ " dv=" ++ show_nat (value I).

Definition show_instance (I : instance) : seq string :=
  let H := heads I in let P := pseudo_heads I in
  let D := model I in
  let W := ctabulate H P D (key I) (value I) (layer I) in
  [seq name I ++ " " ++ line | line <-
    [:: "sizes " ++ sizes I ++ " " ++ attention_name I ++ " " ++ mask_name I;
        "w_q " ++ show3 H D (key I) (cw_q W);
        "w_k " ++ show3 H D (key I) (cw_k W);
        "w_v " ++ show3 H D (value I) (cw_v W);
        "alpha_q " ++ show3 H H P (calpha_q W);
        "alpha_k " ++ show3 H H P (calpha_k W);
        "alpha_v " ++ show3 H H P (calpha_v W);
        "collapse " ++ show3 H H P (ccollapse W);
        "x " ++ show2 (tokens I) D (input I);
        "output " ++ show3 H (tokens I) (value I) (output I)]].

(* A filter bank: N tokens, d features f, k powers of a, L value blocks.      *)
Definition filter_bank_of nm H P L N d (f : nat -> nat -> R) (W : cweights R) : instance :=
  Instance nm H P N (d + N) N (L * d) "linear" "none" (@clinear R) cno_mask W (ccode d f).

Definition show_bank (I : instance) d k (a f : nat -> nat -> R) : seq string :=
  let N := tokens I in let dv := value I in
  let out := output I in
  let columns n t := out (t %/ dv)%N n (t %% dv)%N in
  let bank n t := csum N (fun l => cpow N a (t %/ d)%N n l * f l (t %% d)%N) in
  cat (show_instance I)
    [:: name I ++ " columns " ++ show2 N (k * d) columns;
        name I ++ " bank " ++ show2 N (k * d) bank].
End Printing.

(* ------------------------------------------------------------------------ *)
(** * Theorem 3 *)

Definition entries (R : Type) (x0 : R) (rows : seq (seq R)) (i j : nat) : R :=
  nth x0 (nth [::] rows i) j.
Definition ints := entries (0 : int).
Definition rats (rows : seq (seq int)) (i j : nat) : rat := (ints rows i j)%:~R.

Local Open Scope string_scope.

(* k = 4: N = 2, d = 1, H = P = 2.                                            *)
Definition a2 : nat -> nat -> int := ints [:: [:: 1; 2%:Z]; [:: 3%:Z; 4%:Z]].
Definition f2 : nat -> nat -> int := ints [:: [:: 5%:Z]; [:: 7%:Z]].
Eval vm_compute in
  show_bank show_int
    (filter_bank_of "theorem3_k4" 2 2 2 2 1 f2 (cpolynomial_filter 1 1 2 a2)) 1 4 a2 f2.

(* k = 7, no square: N = 3, d = 2, H = P = 3; A is not symmetric.             *)
Definition a3 : nat -> nat -> int :=
  ints [:: [:: 0; 1; 2%:Z]; [:: -1; 1; 0]; [:: 1; 0; -1]].
Definition f3 : nat -> nat -> int := ints [:: [:: 2%:Z; -1]; [:: 3%:Z; 1]; [:: 0; 5%:Z]].
Eval vm_compute in
  show_bank show_int
    (filter_bank_of "theorem3_k7" 3 3 3 3 2 f3 (cpolynomial_filter 2 2 3 a3)) 2 7 a3 f3.

(* Tiled, k = 8: H = 4 heads, P = 2 pseudo-heads, L = 2 value blocks.         *)
Definition turn : nat -> nat -> int := ints [:: [:: 1; 1]; [:: -1; 0]].
Eval vm_compute in
  show_bank show_int
    (filter_bank_of "tiled_h4_p2_l2" 4 2 2 2 1 f2 (ctiled_filter 1 1 4 2 2 turn)) 1 8 turn f2.

(* Tiled, k = 25: H = L = 5, P = 3, the last runs being shorter than P.       *)
Eval vm_compute in
  show_bank show_int
    (filter_bank_of "tiled_h5_p3_l5" 5 3 5 2 1 f2 (ctiled_filter 1 1 5 3 5 turn)) 1 25 turn f2.

(* Signed, k = 9: H = L = 3, P = 2, over the rationals.                       *)
Definition rat_turn : nat -> nat -> rat := rats [:: [:: 1; 1]; [:: -1; 0]].
Definition rat_f2 : nat -> nat -> rat := rats [:: [:: 5%:Z]; [:: 7%:Z]].
Definition half : rat := 2%:R^-1.
Definition csigned_c : nat -> nat -> rat :=
  entries 0 [:: [:: 0; 1; half]; [:: 1; 0; half]; [:: -1; 1; 0]].
Definition csigned_g : nat -> nat -> rat :=
  entries 0 [:: [:: 0; 2%:R; 1]; [:: 2%:R; 0; 1]; [:: 1; -1; 0]].
Eval vm_compute in
  show_bank show_rat
    (filter_bank_of "signed_h3_p2_l3" 3 2 3 2 1 rat_f2
       (crank_one_filter 1 1 3 3 csigned_c csigned_g rat_turn)) 1 9 rat_turn rat_f2.

(* MHA, k = 3 heads, as IHA with one pseudo-head: N = 3, d = 2.               *)
Eval vm_compute in
  show_bank show_int
    (filter_bank_of "mha_k3" 3 1 1 3 2 f3 (cmulti_head_filter 2 2 a3)) 2 3 a3 f3.

(* ------------------------------------------------------------------------ *)
(** * Layers without structure, so that no exchange of two indices can pass *)

Definition scatter (s i j k : nat) : int :=
  ((i * 17 + j * 23 + k * 29 + i.+1 * j.+2 * k.+3 * 7 + s * 13) %% 31 %% 3)%:Z - 1.

Definition scattered : cweights int :=
  CWeights (scatter 0) (scatter 1) (scatter 2)
           (scatter 0) (scatter 2) (scatter 1) (scatter 4).

Definition scattered_instance nm mask masked : instance [comRingType of int] :=
  Instance nm 2 3 4 5 6 7 "linear" mask (@clinear _) masked scattered (scatter 3 2).

Eval vm_compute in show_instance show_int (scattered_instance "linear_none" "none" cno_mask).
Eval vm_compute in
  show_instance show_int (scattered_instance "linear_token" "token" ctoken_causal).
Eval vm_compute in
  show_instance show_int (scattered_instance "linear_flat" "flat" (cflat_causal 3)).

(* Hard attention, with ties.                                                 *)
Definition rat_scatter (s i j k : nat) : rat := (scatter s i j k)%:~R.
Definition rat_scattered : cweights rat :=
  CWeights (rat_scatter 0) (rat_scatter 1) (rat_scatter 2)
           (rat_scatter 0) (rat_scatter 2) (rat_scatter 1) (rat_scatter 4).

Definition hard_instance nm mask masked : instance [comRingType of rat] :=
  Instance nm 2 3 4 3 1 2 "hard" mask (@chard _ 3 4) masked rat_scattered (rat_scatter 3 2).

Eval vm_compute in show_instance show_rat (hard_instance "hard_none" "none" cno_mask).
Eval vm_compute in show_instance show_rat (hard_instance "hard_token" "token" ctoken_causal).
Eval vm_compute in show_instance show_rat (hard_instance "hard_flat" "flat" (cflat_causal 3)).

(* Normalised attention: a score s weighs 2^s.                                *)
Definition power2 (s : rat) : rat := 2%:R ^ numq s.

Definition rat3 (a : seq (seq (seq int))) (i : nat) : nat -> nat -> rat := rats (nth [::] a i).
Definition base2_weights : cweights rat :=
  CWeights (rat3 [:: [:: [:: 1]; [:: 0]; [:: 1]]; [:: [:: 0]; [:: 2%:Z]; [:: -1]]])
           (rat3 [:: [:: [:: 0]; [:: 1]; [:: -1]]; [:: [:: 1]; [:: -1]; [:: 0]]])
           (rat_scatter 2)
           (rat3 [:: [:: [:: 1; 0]; [:: 0; 1]]; [:: [:: 0; 1]; [:: 1; 0]]])
           (rat3 [:: [:: [:: 1; 0]; [:: 0; 0]]; [:: [:: 0; 1]; [:: 1; 1]]])
           (rat_scatter 1)
           (rat3 [:: [:: [:: 0; 1]; [:: -1; 0]]; [:: [:: 1; 0]; [:: 0; 2%:Z]]]).
Definition base2_input : nat -> nat -> rat :=
  rats [:: [:: 1; 0; 0]; [:: 0; 1; 0]; [:: 1; 0; 1]].
Definition base2_instance nm mask masked : instance [comRingType of rat] :=
  Instance nm 2 2 3 3 1 2 "base2" mask (cnormalised 2 3 power2) masked
           base2_weights base2_input.

Eval vm_compute in show_instance show_rat (base2_instance "base2_none" "none" cno_mask).
Eval vm_compute in show_instance show_rat (base2_instance "base2_token" "token" ctoken_causal).
Eval vm_compute in show_instance show_rat (base2_instance "base2_flat" "flat" (cflat_causal 2)).

(* ------------------------------------------------------------------------ *)
(** * Theorem 4: cyclic shifts of N = n + 1 tokens by hard attention *)

Definition shifts_of nm H P n dv (W : cweights rat) (x : nat -> nat -> rat) : instance _ :=
  Instance nm H P n.+1 (1 + n.+1) n.+1 dv "hard" "none" (@chard _ P n.+1) cno_mask W (ccode 1 x).

Definition distinct (i _ : nat) : rat := (i * i + 2)%:R.

(* N square, not square, and with more columns than tokens.                   *)
Eval vm_compute in
  show_instance show_rat (shifts_of "theorem4_n4_h2" 2 2 3 2 (ccyclic_shifts _ 3 2) distinct).
Eval vm_compute in
  show_instance show_rat (shifts_of "theorem4_n3_h2" 2 2 2 2 (ccyclic_shifts _ 2 2) distinct).
Eval vm_compute in
  show_instance show_rat (shifts_of "theorem4_n5_h3" 3 3 4 3 (ccyclic_shifts _ 4 3) distinct).

(* MHA, N heads, as IHA with one pseudo-head.                                 *)
Eval vm_compute in
  show_instance show_rat (shifts_of "theorem4_mha_n3" 3 1 2 1 (ccyclic_shifts_mha _ 2) distinct).

(* ------------------------------------------------------------------------ *)
(** * Theorem 2: H = 2 heads, N = D = 3, dk = 1, dv = 2, scores s that weigh 2^s *)

Definition base_q : nat -> nat -> nat -> rat := cw_q base2_weights.
Definition base_k : nat -> nat -> nat -> rat := cw_k base2_weights.
Definition base_v : nat -> nat -> nat -> rat := cw_v base2_weights.

Definition theorem2_of nm P mask masked (x : nat -> nat -> rat) (W : cweights rat) : instance _ :=
  Instance nm 2 P 3 3 1 2 "base2" mask (cnormalised P 3 power2) masked W x.
Definition none nm P := theorem2_of nm P "none" cno_mask base2_input.
Definition token nm P := theorem2_of nm P "token" ctoken_causal base2_input.
Definition flat nm P := theorem2_of nm P "flat" (cflat_causal P) base2_input.
(* The same token thrice.                                                     *)
Definition repeated nm P := theorem2_of nm P "none" cno_mask (rats (nseq 3 [:: 2%:Z; 1; -1])).

(* MHA itself, as IHA with one pseudo-head.                                   *)
Definition base_mha := cmulti_head base_q base_k base_v.
Eval vm_compute in show_instance show_rat (none "theorem2_mha_none" 1 base_mha).
Eval vm_compute in show_instance show_rat (token "theorem2_mha_token" 1 base_mha).
Eval vm_compute in show_instance show_rat (repeated "theorem2_mha_repeated" 1 base_mha).

(* Inclusion: copies, R on one pseudo-head or on their mean.                  *)
Definition copies_of := ccopies base_q base_k base_v.
Eval vm_compute in show_instance show_rat (none "copies_p2_first_none" 2 (copies_of (cpick _ 0))).
Eval vm_compute in show_instance show_rat (token "copies_p2_last_token" 2 (copies_of (cpick _ 1))).
Eval vm_compute in show_instance show_rat (flat "copies_p2_last_flat" 2 (copies_of (cpick _ 1))).
Eval vm_compute in show_instance show_rat (flat "copies_p2_first_flat" 2 (copies_of (cpick _ 0))).
Eval vm_compute in show_instance show_rat (none "copies_p3_mean_none" 3 (copies_of (cmean _ 3))).
Eval vm_compute in show_instance show_rat (token "copies_p3_second_token" 3 (copies_of (cpick _ 1))).
Eval vm_compute in show_instance show_rat (flat "copies_p3_last_flat" 3 (copies_of (cpick _ 2))).
Eval vm_compute in show_instance show_rat (flat "copies_p3_first_flat" 3 (copies_of (cpick _ 0))).

(* The separating example as printed and corrected; zero mixing.              *)
Definition printed_of := cprinted base_q base_k base_v.
Definition corrected_of := ccorrected base_q base_k base_v.
Definition zero_mixing_of := czero_mixing base_q base_k base_v.
Eval vm_compute in show_instance show_rat (none "printed_none" 2 printed_of).
Eval vm_compute in show_instance show_rat (repeated "printed_repeated" 2 printed_of).
Eval vm_compute in show_instance show_rat (none "corrected_none" 2 corrected_of).
Eval vm_compute in show_instance show_rat (token "corrected_token" 2 corrected_of).
Eval vm_compute in show_instance show_rat (flat "corrected_flat" 2 corrected_of).
Eval vm_compute in show_instance show_rat (repeated "corrected_repeated" 2 corrected_of).
Eval vm_compute in show_instance show_rat (repeated "zero_mixing_repeated" 3 zero_mixing_of).
Eval vm_compute in show_instance show_rat (token "zero_mixing_token" 3 zero_mixing_of).
