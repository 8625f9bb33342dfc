(* The layer once more, as a program: indices are natural numbers, sums are   *)
(* folds, and the definitions compute for every ring that computes.  Each is  *)
(* proved equal to its matrix form in Layer.v and Theorem3.v, so that the     *)
(* numbers which Instances.v prints belong to the layer of the theorems.      *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem3.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * Sums, matrices, powers *)

Definition csum (R : ringType) n (F : nat -> R) : R :=
  foldr (fun i s => F i + s) 0 (iota 0 n).

Lemma csumE (R : ringType) n (F : nat -> R) : csum n F = \sum_(i < n) F i.
Proof. by rewrite -(big_mkord xpredT F) /csum unlock /= /index_iota subn0. Qed.

(* The same function on 0 .. n-1, from a table made once.                     *)
Definition memo T (x0 : T) n (f : nat -> T) : nat -> T :=
  let t := [seq f i | i <- iota 0 n] in fun i => nth x0 t i.
Definition memo2 (R : ringType) m n (f : nat -> nat -> R) : nat -> nat -> R :=
  memo (fun _ => 0) m (fun i => memo 0 n (f i)).
Definition memo3 (R : ringType) l m n (f : nat -> nat -> nat -> R) : nat -> nat -> nat -> R :=
  memo (fun _ _ => 0) l (fun i => memo2 m n (f i)).

Lemma memoE T x0 n (f : nat -> T) (i : 'I_n) : memo x0 n f i = f i.
Proof. by rewrite /memo (nth_map 0%N) ?size_iota // nth_iota. Qed.
Lemma memo2E (R : ringType) m n (f : nat -> nat -> R) (i : 'I_m) (j : 'I_n) :
  memo2 m n f i j = f i j.
Proof. by rewrite /memo2 !memoE. Qed.
Lemma memo3E (R : ringType) l m n (f : nat -> nat -> nat -> R) (h : 'I_l) (i : 'I_m) (j : 'I_n) :
  memo3 l m n f h i j = f h i j.
Proof. by rewrite /memo3 memoE memo2E. Qed.

Section Matrices.
Variable R : comRingType.
Implicit Types a b x : nat -> nat -> R.

Definition mat m n a : 'M[R]_(m, n) := \matrix_(i, j) a i j.

Definition cmul K a b (i j : nat) : R := csum K (fun t => a i t * b t j).
Definition cone (i j : nat) : R := (i == j)%:R.
Definition cpow N a k : nat -> nat -> R :=
  iter k (fun b => memo2 N N (cmul N a b)) cone.
Definition ccode d x (i j : nat) : R := if (j < d)%N then x i j else cone i (j - d).

Lemma mat_cmul m n K a b : mat m n (cmul K a b) = mat m K a *m mat K n b.
Proof.
apply/matrixP => i j; rewrite !mxE /cmul csumE.
by apply: eq_bigr => t _; rewrite !mxE.
Qed.

Lemma mat_cone n : mat n n cone = 1%:M.
Proof. by apply/matrixP => i j; rewrite !mxE. Qed.

Lemma mat_cpow n a k : mat n.+1 n.+1 (cpow n.+1 a k) = mat n.+1 n.+1 a ^+ k.
Proof.
elim: k => [|k IHk]; first exact: mat_cone.
rewrite exprS -IHk -mulmxE -mat_cmul.
by apply/matrixP => i j; rewrite [LHS]mxE [RHS]mxE; apply: memo2E.
Qed.

Lemma mat_ccode n d x :
  mat n.+1 (d + n.+1) (ccode d x) = with_code (mat n.+1 d x).
Proof.
apply/matrixP => i j; rewrite !mxE /ccode; case: splitP => t ->.
  by rewrite mxE.
by rewrite addKn mxE.
Qed.
End Matrices.

(* ------------------------------------------------------------------------ *)
(** * The layer *)

Record cweights (R : Type) := CWeights {
  cw_q : nat -> nat -> nat -> R;       (* source, model, key *)
  cw_k : nat -> nat -> nat -> R;       (* source, model, key *)
  cw_v : nat -> nat -> nat -> R;       (* source, model, value *)
  calpha_q : nat -> nat -> nat -> R;   (* source, head, pseudo *)
  calpha_k : nat -> nat -> nat -> R;   (* source, head, pseudo *)
  calpha_v : nat -> nat -> nat -> R;   (* source, head, pseudo *)
  ccollapse : nat -> nat -> nat -> R   (* out, head, pseudo *) }.

(* A weighting on P x N positions (pseudo, token).                            *)
Definition cweighting (R : Type) :=
  (nat -> nat -> bool) -> (nat -> nat -> R) -> nat -> nat -> R.

Section Layer.
Variables (R : comRingType) (H P N D dk dv : nat).
Implicit Types (c : cweights R) (x : nat -> nat -> R) (cw : cweighting R).
Implicit Types (cmask : nat -> nat -> nat -> nat -> bool).

(* The pseudo-tokens of head h: [pseudo][token][column].                       *)
Definition cpseudo e (a w : nat -> nat -> nat -> R) x h : nat -> nat -> nat -> R :=
  memo3 P N e (fun j n l => csum H (fun m => a m h j * cmul D x (w m) n l)).

(* Attention on the pseudo-tokens.                                            *)
Definition cattend cw cmask (q k v : nat -> nat -> nat -> R) j n : nat -> R :=
  let s := memo2 P N (fun j' n' => csum dk (fun l => q j n l * k j' n' l)) in
  let w := memo2 P N (cw (cmask j n) s) in
  fun e => csum P (fun j' => csum N (fun n' => w j' n' * v j' n' e)).

Definition cpseudo_output cw cmask c x h : nat -> nat -> nat -> R :=
  let q := cpseudo dk (calpha_q c) (cw_q c) x h in
  let k := cpseudo dk (calpha_k c) (cw_k c) x h in
  let v := cpseudo dv (calpha_v c) (cw_v c) x h in
  memo3 P N dv (cattend cw cmask q k v).

Definition ciha cw cmask c x : nat -> nat -> nat -> R :=
  let p := memo (fun _ _ _ => 0) H (cpseudo_output cw cmask c x) in
  memo3 H N dv (fun h n e =>
    csum H (fun h' => csum P (fun j => ccollapse c h h' j * p h' j n e))).

(* The matrix form of the same weights.                                       *)
Definition of_c c : weights R H P D dk dv :=
  Weights (fun m => mat D dk (cw_q c m)) (fun m => mat D dk (cw_k c m))
          (fun m => mat D dv (cw_v c m))
          (fun m h j => calpha_q c m h j) (fun m h j => calpha_k c m h j)
          (fun m h j => calpha_v c m h j) (fun h h' j => ccollapse c h h' j).

Definition of_cmask cmask : rel ('I_P * 'I_N) := fun p u => cmask p.1 p.2 u.1 u.2.

Definition computes (w : weighting R) cw :=
  forall (A : nat -> nat -> bool) (s : nat -> nat -> R) (u : 'I_P * 'I_N),
    w [finType of 'I_P * 'I_N] (fun v => A v.1 v.2) (fun v => s v.1 v.2) u = cw A s u.1 u.2.

Lemma cpseudoE e (a w : nat -> nat -> nat -> R) x (h : 'I_H) (j : 'I_P) (n : 'I_N) (l : 'I_e) :
  pseudo (fun m h j => a m h j) (fun m => mat D e (w m)) (mat N D x) h j n l
  = cpseudo e a w x h j n l.
Proof.
rewrite /pseudo summxE /cpseudo memo3E csumE; apply: eq_bigr => m _.
by rewrite mxE -mat_cmul mxE.
Qed.

Lemma cpseudo_outputE w cw cmask c x (h : 'I_H) (j : 'I_P) (n : 'I_N) (e : 'I_dv) :
  equivariant w -> computes w cw ->
  pseudo_output (on_stack w (of_cmask cmask)) (of_c c) (mat N D x) h j n e
  = cpseudo_output cw cmask c x h j n e.
Proof.
move=> w_eq w_cw; rewrite pseudo_outputE // /cpseudo_output memo3E /cattend csumE.
under [RHS]eq_bigr do rewrite csumE.
rewrite pair_big /=; apply: eq_bigr => u _.
rewrite [pseudo_v _ _ _ _ _ _]cpseudoE memo2E -w_cw; congr (_ * _).
apply: equivariant_ext => // u'; rewrite memo2E csumE /score mxE.
by apply: eq_bigr => l _; rewrite mxE !cpseudoE.
Qed.

(** The program computes the layer: any mask on (pseudo, token), any row-wise
    activation that the program computes. *)
Theorem cihaE w cw cmask c x (h : 'I_H) (n : 'I_N) (e : 'I_dv) :
  equivariant w -> computes w cw ->
  iha (on_stack w (of_cmask cmask)) (of_c c) (mat N D x) h n e
  = ciha cw cmask c x h n e.
Proof.
move=> w_eq w_cw; rewrite /ciha memo3E csumE summxE; apply: eq_bigr => h' _.
rewrite csumE summxE; apply: eq_bigr => j _.
by rewrite mxE memoE (@cpseudo_outputE w cw).
Qed.

(* The weights from tables.                                                   *)
Definition ctabulate c : cweights R :=
  CWeights (memo3 H D dk (cw_q c)) (memo3 H D dk (cw_k c)) (memo3 H D dv (cw_v c))
    (memo3 H H P (calpha_q c)) (memo3 H H P (calpha_k c)) (memo3 H H P (calpha_v c))
    (memo3 H H P (ccollapse c)).

End Layer.

(* Programs for the three weightings.                                         *)
Definition cno_mask : nat -> nat -> nat -> nat -> bool := fun _ _ _ _ => true.
Definition ctoken_causal : nat -> nat -> nat -> nat -> bool :=
  fun j n j' n' => (n' <= n)%N.
Definition cflat_causal P : nat -> nat -> nat -> nat -> bool :=
  fun j n j' n' => (n' * P + j' <= n * P + j)%N.

Definition clinear (R : ringType) : cweighting R := fun A s j n => if A j n then s j n else 0.

Definition cnormalised (F : fieldType) P N (e : F -> F) : cweighting F := fun A s j n =>
  if A j n then e (s j n) / csum P (fun j' => csum N (fun n' =>
                              if A j' n' then e (s j' n') else 0))
  else 0.

Definition cmaximal (F : realFieldType) P N (A : nat -> nat -> bool) (s : nat -> nat -> F) j n :=
  A j n && all (fun j' => all (fun n' => A j' n' ==> (s j' n' <= s j n)) (iota 0 N)) (iota 0 P).
Definition chard (F : realFieldType) P N : cweighting F := fun A s j n =>
  if cmaximal P N A s j n
  then (csum P (fun j' => csum N (fun n' => (cmaximal P N A s j' n')%:R)))^-1 else 0.

(* They are the masks of Layer.v.                                             *)
Lemma cno_maskE P N : @of_cmask P N cno_mask = no_mask.
Proof. by []. Qed.
Lemma ctoken_causalE P N : @of_cmask P N ctoken_causal = token_causal.
Proof. by []. Qed.
Lemma cflat_causalE P N : @of_cmask P N (cflat_causal P) = flat_causal.
Proof. by []. Qed.

Section Weightings.
Variables P N : nat.

Lemma clinearE (R : comRingType) : @computes R P N (@linear_weighting R) (@clinear R).
Proof. by []. Qed.

Lemma cnormalisedE (F : fieldType) (e : F -> F) :
  @computes F P N (normalised e) (cnormalised P N e).
Proof.
move=> A s u; rewrite /normalised /cnormalised csumE.
under [in RHS]eq_bigr do rewrite csumE.
by rewrite pair_big /= -big_mkcond.
Qed.

Lemma all_iota n (p : pred nat) : all p (iota 0 n) = [forall i : 'I_n, p i].
Proof.
apply/allP/forallP => [all_p i | all_p i]; first by apply: all_p; rewrite mem_iota ltn_ord.
by rewrite mem_iota => i_lt; apply: (all_p (Ordinal i_lt)).
Qed.

Lemma chardE (F : realFieldType) : @computes F P N (@hard F) (@chard F P N).
Proof.
move=> A s; have maxE (u : 'I_P * 'I_N) :
    cmaximal P N A s u.1 u.2 =
    maximal (fun v : 'I_P * 'I_N => A v.1 v.2) (fun v => s v.1 v.2) u.
  congr (_ && _); rewrite all_iota; apply/forallP/forallP => [all_u [j n] | all_u j].
    by move: (all_u j); rewrite all_iota => /forallP/(_ n).
  by rewrite all_iota; apply/forallP => n; apply: (all_u (j, n)).
move=> u; rewrite /hard /chard maxE; congr (if _ then _^-1 else _).
rewrite csumE; under [in RHS]eq_bigr do rewrite csumE.
rewrite pair_big /= -sum1_card natr_sum [LHS]big_mkcond.
by apply: eq_bigr => v _; rewrite maxE inE; case: ifP.
Qed.
End Weightings.

(* Linear attention, where act is the identity on matrices.                   *)
Corollary ciha_linear (R : comRingType) H P N D dk dv (c : cweights R) x
    (h : 'I_H) (n : 'I_N) (e : 'I_dv) :
  iha id (of_c H P D dk dv c) (mat N D x) h n e
  = ciha H P N D dk dv (@clinear R) cno_mask c x h n e.
Proof.
rewrite -(@cihaE _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ (@linear_equivariant R) (@clinearE P N R)).
congr (fun M : 'M_(_, _) => M n e); apply: eq_bigr => h' _; apply: eq_bigr => j _.
by rewrite -pseudo_output_on_stack_linear.
Qed.

(* ------------------------------------------------------------------------ *)
(** * The weights of Theorem 3 as programs *)

(* Two weights that are equal field by field, entry by entry.                 *)
Definition same_weights R H P D dk dv (W W' : weights R H P D dk dv) : Prop :=
  [/\ w_q W =1 w_q W', w_k W =1 w_k W' & w_v W =1 w_v W'] /\
  [/\ forall m h, alpha_q W m h =1 alpha_q W' m h,
      forall m h, alpha_k W m h =1 alpha_k W' m h,
      forall m h, alpha_v W m h =1 alpha_v W' m h
    & forall m h, collapse W m h =1 collapse W' m h].

Lemma iha_same_weights (R : comRingType) H P N D dk dv (W W' : weights R H P D dk dv)
    act (X : 'M[R]_(N, D)) :
  same_weights W W' -> iha act W X =1 iha act W' X.
Proof.
move=> [[eq_q eq_k eq_v] [eq_aq eq_ak eq_av eq_c]] h.
apply: eq_bigr => h' _; apply: eq_bigr => j _; rewrite eq_c; congr (_ *: submxcol _ _).
by congr (attention _ _ _ _); apply: eq_mxcol => j'; apply: eq_bigr => m _;
  rewrite ?eq_q ?eq_k ?eq_v ?eq_aq ?eq_ak ?eq_av.
Qed.

Lemma ctabulateE (R : comRingType) H P D dk dv (c : cweights R) :
  same_weights (of_c H P D dk dv (ctabulate H P D dk dv c)) (of_c H P D dk dv c).
Proof.
by split; [split=> m; apply/matrixP => i j | split=> m h j]; rewrite ?mxE /= memo3E.
Qed.

(* What Instances.v runs: the program on tabulated weights and input.         *)
Definition crun (R : comRingType) H P N D dk dv (cw : cweighting R) cmask
    (c : cweights R) (x : nat -> nat -> R) : nat -> nat -> nat -> R :=
  ciha H P N D dk dv cw cmask (ctabulate H P D dk dv c) (memo2 N D x).

(** What runs is the layer. *)
Theorem crunE (R : comRingType) H P N D dk dv (w : weighting R) cw cmask
    (c : cweights R) x (h : 'I_H) (n : 'I_N) (e : 'I_dv) :
  equivariant w -> @computes R P N w cw ->
  iha (on_stack w (of_cmask cmask)) (of_c H P D dk dv c) (mat N D x) h n e
  = crun H P N D dk dv cw cmask c x h n e.
Proof.
move=> w_eq w_cw; rewrite -(iha_same_weights _ _ (ctabulateE H P D dk dv c)).
rewrite /crun -(@cihaE _ _ _ _ _ _ _ w) //; congr (iha _ _ _ _ _ _).
by apply/matrixP => i j; rewrite [LHS]mxE [RHS]mxE memo2E.
Qed.

Section Weights.
Variables (R : comRingType) (n d : nat).
Implicit Types a x : nat -> nat -> R.
Local Notation N := n.+1.

(* [0; B] and [B; 0] with d rows of features first.                           *)
Definition cbelow (b : nat -> nat -> R) t e : R := if (t < d)%N then 0 else b (t - d)%N e.
Definition cplace (m t e : nat) : R := ((t < d) && (e == m * d + t))%N%:R.

Definition ckey L a m : nat -> nat -> R :=
  if (m < L)%N then cbelow (fun i j => cpow N a m j i) else fun _ _ => 0.

Definition cfilter L a (aq ak av c : nat -> nat -> nat -> R) : cweights R :=
  CWeights (fun m => cbelow (cpow N a (m * L))) (ckey L a) cplace aq ak av c.

Definition cpolynomial_filter H a : cweights R :=
  cfilter H a
    (fun m h j => ((m == h) && (j == 0))%N%:R)
    (fun m _ j => (m == j)%:R) (fun m _ j => (m == j)%:R)
    (fun h h' j => ((h' == h) && (j == 0))%N%:R).

Definition ctiled_filter H P L a : cweights R :=
  let p := ceil_div H P in
  let q := ceil_div L P in
  let row := fun m i j => (m == i %/ q * P + j)%N in
  let col := fun m i j => [&& i < p * q, m < L & m == i %% q * P + j]%N in
  cfilter L a (fun m i j => (row m i j)%:R) (fun m i j => (col m i j)%:R)
    (fun m i j => (col m i j)%:R) (fun o i j => (row o i j)%:R).

(* m is the j-th element of the support of v.                                 *)
Definition cnth_support H (v : nat -> R) (m j : nat) : bool :=
  (v m != 0) && (index m [seq i <- iota 0 H | v i != 0] == j).

Definition crank_one_filter H L (c g : nat -> nat -> R) a : cweights R :=
  cfilter L a
    (fun m i j => (cnth_support H (c i) m j)%:R)
    (fun m i j => (cnth_support H (g i) m j)%:R)
    (fun m i j => g i m * (cnth_support H (g i) m j)%:R)
    (fun o i j => c i o * (cnth_support H (c i) o j)%:R).

(* MHA with k heads, as IHA with one pseudo-head.                             *)
Definition cmulti_head_filter a : cweights R :=
  let same := fun m h (_ : nat) => (m == h)%:R in
  CWeights (fun i => cbelow (cpow N a i)) (fun=> cbelow (@cone R))
           (fun=> cplace 0) same same same (fun h h' _ => (h' == h)%:R).

Lemma cbelowE dk (b : nat -> nat -> R) :
  mat (d + N) dk (cbelow b) = col_mx 0 (mat N dk b).
Proof.
apply/matrixP => t e; rewrite !mxE /cbelow; case: splitP => i ti; first by rewrite mxE.
by rewrite ti addKn mxE.
Qed.

Lemma ckeyE L a m : mat (d + N) N (ckey L a m) = filter_key d L (mat N N a) m.
Proof.
rewrite /ckey /filter_key; case: ifP => _; last by apply/matrixP => t e; rewrite !mxE.
by rewrite cbelowE -mat_cpow; congr (col_mx _ _); apply/matrixP => i j; rewrite !mxE.
Qed.

Lemma cplaceE L (m : nat) :
  mat (d + N) (\sum_(b < L) d) (cplace m) = col_mx (place d L m) 0.
Proof.
apply/matrixP => t e; rewrite !mxE /cplace; case: splitP => i ti; last by rewrite mxE.
rewrite ti andTb !mxE; set b := tagnat.sig1 e; set f := tagnat.sig2 e.
have -> : val e = (b * d + f)%N.
  apply: etrans (tagnat.rect e) _; congr (_ + _)%N.
  by rewrite -(big_ord_widen L (fun=> d)) 1?ltnW // sum_nat_const card_ord.
have d_gt0 : (0 < d)%N by apply: leq_trans (ltn_ord i).
rewrite -mulrnA mulnb; congr ((nat_of_bool _)%:R); have f_lt : (f < d)%N := ltn_ord f.
apply/eqP/andP => [bm | [/eqP -> /eqP ->] //].
have := congr1 (divn^~ d) bm; have := congr1 (modn^~ d) bm; rewrite /= !modnMDl.
by rewrite !divnMDl // !modn_small // !divn_small // !addn0 -val_eqE /= => -> ->.
Qed.

Theorem cpolynomial_filterE H a :
  same_weights (of_c H H (d + N) N (\sum_(b < H) d) (cpolynomial_filter H a))
               (polynomial_filter d H (mat N N a)).
Proof.
by split; split=> // m; rewrite /= ?cbelowE ?ckeyE ?cplaceE ?mat_cpow.
Qed.

Theorem ctiled_filterE H P L a :
  same_weights (of_c H P (d + N) N (\sum_(b < L) d) (ctiled_filter H P L a))
               (tiled_filter d H P L (mat N N a)).
Proof.
by split; split=> // m; rewrite /= ?cbelowE ?ckeyE ?cplaceE ?mat_cpow.
Qed.

Lemma cnth_supportE H P (v : nat -> R) (m : 'I_H) (j : 'I_P) :
  nth_support (fun i : 'I_H => v i) m j = cnth_support H v m j.
Proof.
rewrite /cnth_support (_ : [seq i <- iota 0 H | v i != 0] =
  map val (enum (support (fun i : 'I_H => v i)))).
  by rewrite (index_map val_inj).
by rewrite -val_enum_ord filter_map; congr map; rewrite /enum_mem filter_predT.
Qed.

Theorem crank_one_filterE H P L (c g : nat -> nat -> R) a :
  same_weights (of_c H P (d + N) N (\sum_(b < L) d) (crank_one_filter H L c g a))
    (rank_one_filter d P L (fun i m : 'I_H => c i m) (fun i m : 'I_H => g i m) (mat N N a)).
Proof.
by split; [split=> m | split=> m i j];
  rewrite /= ?cnth_supportE ?cbelowE ?ckeyE ?cplaceE ?mat_cpow.
Qed.

Theorem cmulti_head_filterE k a :
  same_weights (of_c k 1 (d + N) N d (cmulti_head_filter a))
    (multi_head (@filter_head_q R n d k (mat N N a)) (@filter_head_k R n d k)
                (@filter_head_v R n d k)).
Proof.
split; split=> // m; rewrite /= ?cbelowE ?mat_cpow ?mat_cone //.
apply/matrixP => t e; rewrite !mxE /cplace; case: splitP => i ti; rewrite mxE //.
by rewrite ti eq_sym.
Qed.

(** What the program prints for the weights of Theorem 3 is the bank: entry
    (i, b d + f) of head h is entry (i, f) of A^(h H + b) X. *)
Theorem ctheorem3 H a x (h b : 'I_H) (i : 'I_N) (f : 'I_d) :
  ciha H H N (d + N) N (H * d) (@clinear R) cno_mask (cpolynomial_filter H a)
       (ccode d x) h i (b * d + f)%N
  = csum N (fun t => cpow N a (h * H + b) i t * x t f).
Proof.
pose e : 'I_(\sum_(b < H) d) := tagnat.Rank b f.
have -> : (b * d + f = e)%N.
  rewrite tagnat.RankEsum; congr (_ + _)%N.
  by rewrite -(big_ord_widen H (fun=> d)) 1?ltnW // sum_nat_const card_ord.
rewrite (_ : H * d = \sum_(b < H) d)%N; last by rewrite sum_nat_const card_ord.
rewrite -ciha_linear mat_ccode.
rewrite (iha_same_weights _ _ (cpolynomial_filterE H a)).
have /(congr1 (fun M : 'M_(_, _) => M i f)) := theorem3_block (mat N N a) (mat N d x) h b.
rewrite !mxE => ->; rewrite csumE; apply: eq_bigr => t _.
by rewrite -mat_cpow !mxE.
Qed.
End Weights.
