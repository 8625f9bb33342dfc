(* Theorem 4 (its full form is Theorem 7): all cyclic shifts.                 *)
(*                                                                            *)
(* N = n + 1 tokens, one value each, with the identity as positional code.    *)
(* By hard attention, ceil(sqrt N) heads of IHA write every cyclic shift of   *)
(* the tokens; MHA does so with N heads.  At a finite temperature every token *)
(* comes out with an error that a threshold on the temperature keeps below    *)
(* 1/2.                                                                       *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem3.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * The cyclic shift matrix *)

(* Token (i + k) mod N.                                                       *)
Definition ahead n (i : 'I_n.+1) (k : nat) : 'I_n.+1 := inZp (i + k).

Lemma ahead_add n (i : 'I_n.+1) k l : ahead (ahead i k) l = ahead i (k + l).
Proof. by apply: val_inj; rewrite /= modnDml addnA. Qed.

Lemma ahead0 n (i : 'I_n.+1) : ahead i 0 = i.
Proof. by apply: val_inj; rewrite /= addn0 modn_small. Qed.

Lemma ahead_inj n (i : 'I_n.+1) : injective (fun k : 'I_n.+1 => ahead i k).
Proof.
move=> k l /(congr1 val) /= /eqP; rewrite eqn_modDl => /eqP.
by rewrite !modn_small // => /val_inj.
Qed.

Section Shift.
Variables (R : comRingType) (n : nat).

(* (S x)_i = x_(i+1 mod N)                                                    *)
Definition shift : 'M[R]_n.+1 := \matrix_(i, j) (j == ahead i 1)%:R.

(* The powers of A are 0/1 matrices: row i of A^k reads token step k i.       *)
Definition steps (A : 'M[R]_n.+1) (step : nat -> 'I_n.+1 -> 'I_n.+1) : Prop :=
  forall k i j, (A ^+ k) i j = (j == step k i)%:R.

Lemma steps_of (A : 'M[R]_n.+1) step :
  (forall i j, A i j = (j == step 1%N i)%:R) -> step 0%N =1 id ->
  (forall k i, step k (step 1%N i) = step k.+1 i) -> steps A step.
Proof.
move=> A1 step0 stepS; elim=> [|k IH] i j; first by rewrite expr0 mxE step0 eq_sym.
rewrite exprS mxE (bigD1 (step 1%N i)) //= A1 eqxx mul1r IH stepS big1 ?addr0 // => l.
by move=> /negbTE ne; rewrite A1 ne mul0r.
Qed.

Lemma steps_shift : steps shift (fun k i => ahead i k).
Proof.
by apply: steps_of => [i j|i|k i]; rewrite ?mxE ?ahead0 ?ahead_add.
Qed.

(* The transpose steps back, by n = -1 mod N.                                 *)
Lemma steps_shift_tr : steps shift^T (fun k i => ahead i (k * n)).
Proof.
have back (i : 'I_n.+1) : ahead (ahead i 1) n = i.
  by apply: val_inj; rewrite ahead_add /= add1n modnDr modn_small.
have forth (i : 'I_n.+1) : ahead (ahead i n) 1 = i.
  by apply: val_inj; rewrite ahead_add /= addn1 modnDr modn_small.
apply: steps_of => [i j|i|k i]; rewrite ?mxE ?mul0n ?ahead0 ?ahead_add ?mul1n //.
by congr (_%:R); congr nat_of_bool; apply/eqP/eqP => ->; rewrite ?back ?forth.
Qed.
End Shift.
Arguments shift {R n}.
Arguments steps_shift : clear implicits.
Arguments steps_shift_tr : clear implicits.

(* ------------------------------------------------------------------------ *)
(** * The layer *)

Section Workspace.
Variables (F : realFieldType) (n H : nat).
Implicit Types (A : 'M[F]_n.+1) (x : 'cV[F]_n.+1) (h e : 'I_H) (i : 'I_n.+1).

(* W_Q^m = [0; A^(m H)], W_K^m = [0; (A^m)^T], W_V^m = H e_0 u_m^T; mixing and *)
(* collapse as in Theorem 3.                                                  *)
Definition workspace A : weights F H H (1 + n.+1) n.+1 H :=
  Weights (fun m => col_mx 0 (A ^+ (m * H))) (fun m => col_mx 0 (A ^+ m)^T)
          (fun m => col_mx (H%:R *: delta_mx 0 m) 0)
    (fun m h j => ((m == h) && (j == 0%N :> nat))%:R)
    (fun m _ j => (m == j)%:R) (fun m _ j => (m == j)%:R)
    (fun h h' j => ((h' == h) && (j == 0%N :> nat))%:R).

Variables (A : 'M[F]_n.+1) (step : nat -> 'I_n.+1 -> 'I_n.+1).
Hypothesis A_steps : steps A step.
Let W := workspace A.

Lemma workspace_q x h (j0 : 'I_H) : val j0 = 0%N ->
  pseudo_q W (with_code x) h j0 = A ^+ (h * H).
Proof.
move=> j00; rewrite -[RHS](read_code x); apply: pseudo_pick => m.
by rewrite /= j00 eqxx andbT.
Qed.

Lemma workspace_k x h j : pseudo_k W (with_code x) h j = (A ^+ j)^T.
Proof. by rewrite -[RHS](read_code x); apply: pseudo_pick. Qed.

Lemma workspace_v x h j t e :
  pseudo_v W (with_code x) h j t e = (j == e)%:R * (H%:R * x t 0).
Proof.
rewrite (_ : pseudo_v _ _ _ _ = with_code x *m w_v W j); last exact: pseudo_pick.
rewrite read_features mxE big_ord1 !mxE eqxx [e == j]eq_sym.
by rewrite mulrC mulrAC mulrC.
Qed.

Lemma workspace_score x h (j0 : 'I_H) i u : val j0 = 0%N ->
  score W (with_code x) h (j0, i) u = (u.2 == step (h * H + u.1) i)%:R.
Proof.
move=> j00; rewrite /score workspace_q // workspace_k trmxK.
by rewrite -[_ *m _]/(A ^+ (h * H) * A ^+ u.1) -exprD A_steps.
Qed.

(* If a score of 1 weighs a and a score of 0 weighs c, then output h mixes    *)
(* the wanted token with the sum of all tokens.                               *)
Lemma workspace_output (w : weighting F) x h i e a c : equivariant w ->
  (forall s : 'I_H * 'I_n.+1 -> F, (forall u, s u = (u.2 == step (h * H + u.1) i)%:R) ->
     forall u, w _ predT s u = if u.2 == step (h * H + u.1) i then a else c) ->
  iha (on_stack w no_mask) W (with_code x) h i e =
  H%:R * (c * (\sum_t x t 0) + (a - c) * x (step (h * H + e) i) 0).
Proof.
move=> w_eq weighs; have H_gt0 : (0 < H)%N by apply: leq_trans (ltn_ord h).
rewrite (@iha_pick _ _ _ _ _ _ _ _ W _ _ h (Ordinal H_gt0)) // pseudo_outputE //.
pose hit_weight (j : 'I_H) t := if t == step (h * H + j) i then a else c.
transitivity (\sum_(u : 'I_H * 'I_n.+1)
                hit_weight u.1 u.2 * ((u.1 == e)%:R * (H%:R * x u.2 0))).
  apply: eq_bigr => u _; rewrite workspace_v; congr (_ * _).
  by apply: weighs => {}u; apply: workspace_score.
rewrite -(pair_bigA _ (fun j t => hit_weight j t * ((j == e)%:R * (H%:R * x t 0)))) /=.
rewrite (bigD1 e) //= [X in _ + X]big1 ?addr0; last first.
  by move=> j /negbTE ne; rewrite big1 // => t _; rewrite ne mul0r mulr0.
set s := step _ i; transitivity (\sum_t (H%:R * (c * x t 0)
                                 + (t == s)%:R * (H%:R * ((a - c) * x t 0)))).
  apply: eq_bigr => t _; rewrite eqxx mul1r /hit_weight -/s.
  case: eqP => _; last by rewrite mul0r addr0 mulrCA.
  by rewrite mul1r -mulrDr -mulrDl addrC subrK mulrCA.
rewrite big_split /= -mulr_sumr -mulr_sumr mulrDr; congr (_ + _).
by rewrite (bigD1 s) //= eqxx mul1r big1 ?addr0 // => t /negbTE ->; rewrite mul0r.
Qed.

Lemma count_hits h i : (#|[pred u : 'I_H * 'I_n.+1 | u.2 == step (h * H + u.1) i]| = H)%N.
Proof.
rewrite -sum1_card big_mkcond /=.
rewrite -(pair_bigA _ (fun (j : 'I_H) t => if t == step (h * H + j) i then 1%N else 0%N)) /=.
rewrite (eq_bigr (fun=> 1%N)) ?sum1_card ?card_ord // => j _.
by rewrite -big_mkcond /= big_pred1_eq.
Qed.

(** Hard attention: pseudo-query (h, 0) of token i has exactly H maximal scores,
    one for each pseudo-key, and the layer outputs the tokens they point at. *)
Theorem workspace_hard x h i e :
  iha (on_stack (@hard F) no_mask) W (with_code x) h i e = x (step (h * H + e) i) 0.
Proof.
have H_gt0 : (0 < H)%N by apply: leq_trans (ltn_ord h).
rewrite (@workspace_output _ x h i e (H%:R^-1) 0); first last.
- move=> s sE u; pose u0 := (Ordinal H_gt0, step (h * H + Ordinal H_gt0) i).
  have s1 v : (s v == 1) = (v.2 == step (h * H + v.1) i) by rewrite sE pnatr_eq1 eqb1.
  rewrite (@hardE _ _ _ _ 1 u0) => [|//||v _]; first last.
  - by rewrite sE; case: eqP => _; rewrite ?ler01.
  - by apply/eqP; rewrite s1.
  rewrite /= s1 -[X in _ = if _ then X%:R^-1 else _](count_hits h i).
  by congr (if _ then _%:R^-1 else _); apply: eq_card => v; rewrite !inE s1.
- exact: hard_equivariant.
by rewrite mul0r add0r subr0 mulVKf // pnatr_eq0 -lt0n.
Qed.

(** Finite temperature: if a score of 1 weighs b > 0 against 1 for a score of 0
    (softmax: b = exp beta), the output is x_s + (sum x - N x_s) / (b + N - 1),
    x_s the wanted token. *)
Theorem workspace_softmax (f : F -> F) b x h i e : 0 < b -> f 1 = b -> f 0 = 1 ->
  let s := step (h * H + e) i in
  iha (on_stack (normalised f) no_mask) W (with_code x) h i e =
  x s 0 + (\sum_t x t 0 - n.+1%:R * x s 0) / (b + n%:R).
Proof.
move=> b_gt0 f1 f0 s; have H_gt0 : (0 < H)%N by apply: leq_trans (ltn_ord h).
have H_neq0 : H%:R != 0 :> F by rewrite pnatr_eq0 -lt0n.
have bn_neq0 : b + n%:R != 0 by rewrite gt_eqF // ltr_paddr // ler0n.
pose Z := H%:R * (b + n%:R).
rewrite (@workspace_output _ x h i e (b / Z) (1 / Z)); first last.
- move=> sc scE u; rewrite /normalised.
  have fE v : f (sc v) = if v.2 == step (h * H + v.1) i then b else 1.
    by rewrite scE; case: eqP.
  suff -> : \sum_v f (sc v) = Z by rewrite fE; case: eqP.
  under eq_bigr do rewrite fE.
  rewrite -(pair_bigA _ (fun (j : 'I_H) t => if t == step (h * H + j) i then b else 1)) /=.
  rewrite (eq_bigr (fun=> b + n%:R)) => [|j _].
    by rewrite sumr_const card_ord -[_ *+ H]mulr_natl.
  rewrite (bigD1 (step (h * H + j) i)) //= eqxx; congr (_ + _).
  rewrite (eq_bigr (fun=> 1)) => [|t /negbTE -> //].
  by rewrite sumr_const cardC1 card_ord.
- exact: normalised_equivariant.
rewrite -/s; move: (\sum_t _) (x s 0) => T y.
transitivity ((T + (b - 1) * y) / (b + n%:R)).
  rewrite -mulrBl !(mulrAC _ Z^-1) -mulrDl mul1r.
  by rewrite mulrCA /Z invfM mulVKf.
apply: (canLR (mulfK bn_neq0)); rewrite [RHS]mulrDl divfK // addrCA [y * _]mulrC.
by rewrite -mulrBl mulrS opprD addrACA subrr addr0.
Qed.
End Workspace.
Arguments workspace {F n} H A.

(* ------------------------------------------------------------------------ *)
(** * Theorem 4: all cyclic shifts by hard attention *)

(* Columns are counted through: column b of head h is column h H + b.         *)
Lemma column_index H (c : 'I_(\sum_(h < H) H)) :
  (tagnat.sig1 c * H + tagnat.sig2 c = c)%N.
Proof.
rewrite [in RHS](tagnat.rect c); congr (_ + _)%N.
by rewrite -(big_ord_widen H (fun=> H)) ?sum_nat_const ?card_ord // ltnW.
Qed.

Lemma columns_number H : (\sum_(h < H) H = H * H)%N.
Proof. by rewrite sum_nat_const card_ord. Qed.

Section Theorem4.
Variables (F : realFieldType) (n H : nat).
Implicit Types (x : 'cV[F]_n.+1) (h b : 'I_H) (i : 'I_n.+1).

(* The layer of Theorem 4: A = S.                                             *)
Definition cyclic_shifts : weights F H H (1 + n.+1) n.+1 H := workspace H shift.

Definition shifts_output x := iha_output (on_stack (@hard F) no_mask) cyclic_shifts (with_code x).

(** Head h, column b, token i: the token (i + h H + b) mod N. *)
Theorem theorem4_block x h b i :
  iha (on_stack (@hard F) no_mask) cyclic_shifts (with_code x) h i b
  = x (ahead i (h * H + b)) 0.
Proof. by rewrite (workspace_hard (steps_shift F n)). Qed.

(** Column c of the layer's output, token i: the token (i + c) mod N, for every
    N and H; from column N on the columns repeat. *)
Theorem theorem4_column x i c : shifts_output x i c = x (ahead i c) 0.
Proof. by rewrite mxE theorem4_block column_index. Qed.

(** Theorem 4: for every N, square or not, and N <= H^2, the first N columns of
    the output are all the cyclic shifts of the tokens. *)
Theorem theorem4 x : (n.+1 <= H * H)%N ->
  first_columns n.+1 (shifts_output x) = \matrix_(i, s) x (ahead i s) 0.
Proof.
move=> le_N; apply/matrixP => i s; rewrite !mxE.
have s_lt : (s < \sum_(h < H) H)%N by rewrite columns_number (leq_trans (ltn_ord s)).
by rewrite (insubT (fun c => c < _)%N s_lt) /= theorem4_column.
Qed.
End Theorem4.
Arguments cyclic_shifts F n H : clear implicits.
Arguments shifts_output {F n} H x.

(** Theorem 4 as the paper counts: H = ceil(sqrt N) heads. *)
Corollary theorem4_ceil_sqrt (F : realFieldType) n (x : 'cV[F]_n.+1) :
  first_columns n.+1 (shifts_output (ceil_sqrt n.+1) x) = \matrix_(i, s) x (ahead i s) 0.
Proof. by apply: theorem4; apply: ceil_sqrt_ge. Qed.

(* ------------------------------------------------------------------------ *)
(** * The construction by MHA, one head for each shift *)

Section MultiHead.
Variables (F : realFieldType) (n K : nat).
Implicit Types (x : 'cV[F]_n.+1) (h : 'I_K) (i : 'I_n.+1).

Definition shift_head_q h : 'M[F]_(1 + n.+1, n.+1) := col_mx 0 (shift ^+ h).
Definition shift_head_k h : 'M[F]_(1 + n.+1, n.+1) := col_mx 0 1%:M.
Definition shift_head_v h : 'M[F]_(1 + n.+1, 1) := col_mx 1%:M 0.

(** Head h of MHA with hard attention outputs the shift by h. *)
Theorem multi_head_shift x h i :
  mha (rowwise (@hard F) no_mask id) shift_head_q shift_head_k shift_head_v (with_code x) h i 0
  = x (ahead i h) 0.
Proof.
rewrite mhaE !read_code read_features mulmx1 trmx1 mulmx1.
have s1 t : ((shift ^+ h : 'M[F]_n.+1) i t == 1) = (t == ahead i h).
  by rewrite steps_shift pnatr_eq1 eqb1.
have weighs t : hard (fun=> true) ((shift ^+ h : 'M[F]_n.+1) i) t = (t == ahead i h)%:R.
  rewrite (@hardE _ _ _ _ 1 (ahead i h)) => [|//||u _]; first last.
  - by rewrite steps_shift; case: eqP => _; rewrite ?ler01.
  - by apply/eqP; rewrite s1.
  rewrite /= s1; case: eqP => // _.
  rewrite (_ : #|_| = 1%N) ?invr1 // -[RHS](card1 (ahead i h)).
  by apply: eq_card => u; rewrite !inE s1.
rewrite (bigD1 (ahead i h)) //= weighs eqxx mul1r big1 ?addr0 // => t /negbTE ne.
by rewrite weighs ne mul0r.
Qed.
End MultiHead.

(* ------------------------------------------------------------------------ *)
(** * Finite temperature *)

Section Temperature.
Variables (F : realFieldType) (n H : nat) (f : F -> F) (b : F).
(* What a score weighs before the division by the row's sum; in softmax at    *)
(* inverse temperature beta it is exp(beta s), so that b = exp(beta).         *)
Hypotheses (b_gt0 : 0 < b) (f1 : f 1 = b) (f0 : f 0 = 1).
Implicit Types (x : 'cV[F]_n.+1) (i : 'I_n.+1).

Definition softened_output x :=
  iha_output (on_stack (normalised f) no_mask) (cyclic_shifts F n H) (with_code x).

(** The output at a finite temperature: with s = (i + c) mod N the wanted token,
    x_s + (sum x - N x_s) / (b + N - 1). *)
Theorem softened_column x i c :
  softened_output x i c =
  x (ahead i c) 0 + (\sum_t x t 0 - n.+1%:R * x (ahead i c) 0) / (b + n%:R).
Proof.
by rewrite mxE (workspace_softmax (steps_shift F n) _ _ _ _ b_gt0) //= column_index.
Qed.

(* The error is the sum of the distances to the wanted token over b + N - 1.  *)
Lemma softened_error x i c :
  softened_output x i c - x (ahead i c) 0 =
  (\sum_(t | t != ahead i c) (x t 0 - x (ahead i c) 0)) / (b + n%:R).
Proof.
rewrite softened_column [LHS]addrC addKr; congr (_ / _); move: (ahead i c) => s.
transitivity (\sum_t (x t 0 - x s 0)); last by rewrite (bigD1 s) //= subrr add0r.
by rewrite sumrB sumr_const card_ord mulr_natl.
Qed.

Lemma threshold (D : F) :
  (n%:R * D / (b + n%:R) < 2%:R^-1) = (n%:R * (2%:R * D - 1) < b).
Proof.
rewrite ltr_pdivr_mulr ?ltr_paddr ?ler0n // ltr_pdivl_mull ?ltr0n //.
by rewrite mulrBr mulr1 ltr_subl_addr mulrCA.
Qed.

(** The threshold.  For every N >= 1, H >= 1, D >= 0: rounding to the nearest
    integer recovers every token in every column, for all integer inputs whose
    greatest and least value differ by at most D, if and only if
    b > (N - 1) (2 D - 1). *)
Theorem recovered_iff (D : nat) : (0 < H)%N ->
  (forall x : 'I_n.+1 -> int, (forall t u, x t - x u <= D%:Z) ->
     forall i c, `|softened_output (\col_t (x t)%:~R) i c - (x (ahead i c))%:~R| < 2%:R^-1)
  <-> n%:R * (2%:R * D%:R - 1) < b.
Proof.
move=> H_gt0; rewrite -threshold; have bn_gt0 : 0 < b + n%:R by rewrite ltr_paddr ?ler0n.
have out (x : 'I_n.+1 -> int) i c :
    softened_output (\col_t (x t)%:~R) i c - (x (ahead i c))%:~R =
    (\sum_(t | t != ahead i c) (x t - x (ahead i c))%:~R) / (b + n%:R).
  have := softened_error (\col_t (x t)%:~R) i c; rewrite [X in _ - X]mxE => ->.
  by congr (_ / _); apply: eq_bigr => t _; rewrite !mxE rmorphB.
have const s (y : F) : \sum_(t < n.+1 | t != s) y = n%:R * y.
  by rewrite sumr_const cardC1 card_ord mulr_natl.
split=> [recovered | small x near i c].
  have c_lt : (0 < \sum_(h < H) H)%N by rewrite columns_number muln_gt0 H_gt0.
  pose s := ahead (ord0 : 'I_n.+1) 0.
  have := recovered (fun t => if t == s then 0 else D%:Z) _ ord0 (Ordinal c_lt).
  rewrite out -/s eqxx; rewrite (eq_bigr (fun=> D%:R)) => [|t /negbTE ->]; last by rewrite subr0.
  rewrite const ger0_norm ?divr_ge0 ?mulr_ge0 ?ler0n ?ltW //; apply => t u.
  by case: (t == s); case: (u == s); rewrite ?subrr ?subr0 ?sub0r // -subr_ge0 opprK.
rewrite out normrM [`|_^-1|]gtr0_norm ?invr_gt0 //; apply: le_lt_trans small.
rewrite ler_pmul2r ?invr_gt0 // -(const (ahead i c)).
apply: le_trans (ler_norm_sum _ _ _) _; apply: ler_sum => t _.
by rewrite -intr_norm -[D%:R]/(D%:Z%:~R) ler_int ler_norml near ler_oppl opprB near.
Qed.
End Temperature.

(* ------------------------------------------------------------------------ *)
(** * What fails *)

Section Fails.
Variables (F : realFieldType) (n : nat).

(** S^T for S: the layer writes the backward shifts, column c of token i being
    the token (i - c) mod N; *)
Theorem transpose_column H (x : 'cV[F]_n.+1) i c :
  iha_output (on_stack (@hard F) no_mask) (workspace H shift^T) (with_code x) i c
  = x (ahead i (c * n)) 0.
Proof. by rewrite mxE (workspace_hard (steps_shift_tr F n)) column_index. Qed.

(** so for every N >= 3 it is another workspace: column 1 of token 0 differs. *)
Theorem transpose_differs H : (2 <= n)%N -> (2 <= H)%N ->
  exists (x : 'cV[F]_n.+1) i c,
  iha_output (on_stack (@hard F) no_mask) (workspace H shift^T) (with_code x) i c
  != x (ahead i c) 0.
Proof.
move=> n_ge2 H_ge2; have c_lt : (1 < \sum_(h < H) H)%N.
  by rewrite columns_number (leq_trans H_ge2) // leq_pmulr // ltnW.
exists (\col_t t%:R), ord0, (Ordinal c_lt); rewrite transpose_column !mxE eqr_nat /=.
by rewrite mul1n !add0n !modn_small ?ltnS ?(ltnW n_ge2) // gtn_eqF.
Qed.

(** Fewer heads: if H^2 < N, the output of this construction has no column that
    is the shift by H^2, whatever column is looked at. *)
Theorem fewer_heads_miss H : (H * H < n.+1)%N ->
  exists x : 'cV[F]_n.+1, forall c, exists i,
  shifts_output H x i c != x (ahead i (H * H)) 0.
Proof.
move=> lt_N; exists (\col_t t%:R) => c; exists ord0.
have c_lt : (c < H * H)%N by rewrite -[X in (_ < X)%N]columns_number.
rewrite theorem4_column !mxE eqr_nat /= !add0n !modn_small //; last exact: ltn_trans lt_N.
by rewrite ltn_eqF.
Qed.
End Fails.

(* ceil(sqrt N) - 1 is too small to be a root.                                *)
Lemma ceil_sqrt_pred n : ((ceil_sqrt n.+1).-1 * (ceil_sqrt n.+1).-1 < n.+1)%N.
Proof.
rewrite ltnNge ceil_sqrt_min -ltnNge ltn_predL lt0n.
by apply/eqP => H0; have := ceil_sqrt_ge n.+1; rewrite H0.
Qed.

(** One head fewer than ceil(sqrt N) misses a shift. *)
Corollary one_head_fewer (F : realFieldType) n : let H := (ceil_sqrt n.+1).-1 in
  exists (x : 'cV[F]_n.+1) (s : 'I_n.+1), forall c, exists i,
  shifts_output H x i c != x (ahead i s) 0.
Proof.
move=> H; have [x missed] := fewer_heads_miss F (ceil_sqrt_pred n).
by exists x, (Ordinal (ceil_sqrt_pred n)).
Qed.
