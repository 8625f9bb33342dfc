(* CPM-3, the counting task of Theorem 4 (7): for token i, the number of      *)
(* ordered pairs (j1, j2) with x_i + G x_j1 + x_j2 = 0 mod M.                 *)
(*                                                                            *)
(* The cyclic shifts and one hidden unit for each ordered pair of columns     *)
(* count it, for N = N_max tokens and, with a reserved symbol as padding, for *)
(* shorter sequences.  When the order of j1 and j2 matters depends on G mod M *)
(* alone.                                                                     *)
From Coq Require Import Ring.
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem3 Theorem4.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.

(* ------------------------------------------------------------------------ *)
(** * The task *)

(* The pair (j1, j2) counts for token i.                                      *)
Definition hit G M N (x : 'I_N -> nat) (i j1 j2 : 'I_N) : bool :=
  M %| x i + G * x j1 + x j2.

(* The count, over all ordered pairs, j1 = j2 allowed.                        *)
Definition cpm3 G M N (x : 'I_N -> nat) (i : 'I_N) : nat :=
  #|[pred p : 'I_N * 'I_N | hit G M x i p.1 p.2]|.

Lemma cpm3E G M N (x : 'I_N -> nat) i :
  cpm3 G M x i = \sum_j1 \sum_j2 hit G M x i j1 j2.
Proof.
rewrite (pair_bigA _ (fun j1 j2 => hit G M x i j1 j2 : nat)) /=.
by rewrite /cpm3 -sum1_card big_mkcond; apply: eq_bigr => p _; rewrite inE; case: hit.
Qed.

(* ------------------------------------------------------------------------ *)
(** * One hidden unit for each ordered pair *)

Section HiddenUnits.
Local Open Scope ring_scope.
Variables (F : realFieldType) (G M : nat) (residue : F -> F).

(* The modulo activation, of which only the values at naturals matter.        *)
Definition reduces_mod : Prop := forall m : nat, residue m%:R = (m %% M)%:R.
Hypothesis residue_mod : reduces_mod.

Definition relu (z : F) : F := Num.max 0 z.

(* The sum over ordered pairs of columns of ReLU(1 - (own + G y_1 + y_2 mod M)). *)
Definition pair_units n (own : F) (y : 'I_n -> F) : F :=
  \sum_c1 \sum_c2 relu (1 - residue (own + G%:R * y c1 + y c2)).

(* On a natural a unit is the indicator of the multiples of M.                *)
Lemma unit_indicator (m : nat) : relu (1 - residue m%:R) = (M %| m)%:R.
Proof.
rewrite residue_mod /relu /dvdn; case: (m %% M)%N => [|r] /=.
  by rewrite subr0; apply/max_idPr; apply: ler01.
by apply/max_idPl; rewrite subr_le0 ler1n.
Qed.

(** The units count CPM-3 on every arrangement of the tokens in N columns.     *)
Theorem units_count N (x : 'I_N -> nat) (i : 'I_N) (s : 'I_N -> 'I_N) : injective s ->
  pair_units (x i)%:R (fun c => (x (s c))%:R) = (cpm3 G M x i)%:R.
Proof.
move=> s_inj; rewrite cpm3E natr_sum [RHS](reindex_inj s_inj).
apply: eq_bigr => c1 _; rewrite natr_sum [RHS](reindex_inj s_inj).
by apply: eq_bigr => c2 _; rewrite -natrM -!natrD unit_indicator.
Qed.

(* The hidden units on a workspace: they read its first N columns at token i, *)
(* column 0 being the token itself.                                           *)
Definition count_on n K (workspace : 'M[F]_(n.+1, K)) (i : 'I_n.+1) : F :=
  let columns := first_columns n.+1 workspace in
  pair_units (columns i ord0) (columns i).

(* The tokens as a column of the field.                                       *)
Definition tokens n (x : 'I_n.+1 -> nat) : 'cV[F]_n.+1 := \col_t (x t)%:R.

(** Theorem 4 on CPM-3, for N = N_max: for every N <= H^2 and all natural
    tokens the layer with its hidden units outputs the count. *)
Theorem layer_counts n H (x : 'I_n.+1 -> nat) i : (n.+1 <= H * H)%N ->
  count_on (shifts_output H (tokens x)) i = (cpm3 G M x i)%:R.
Proof.
move=> le_N; rewrite -(units_count x i (@ahead_inj n i)) /count_on theorem4 //.
rewrite !mxE ahead0; apply: eq_bigr => c1 _; apply: eq_bigr => c2 _.
by rewrite !mxE.
Qed.

(** The same for MHA with N heads of width 1, side by side. *)
Theorem multi_head_counts n (x : 'I_n.+1 -> nat) i :
  let heads := \matrix_(r, h < n.+1) mha (rowwise (@hard F) no_mask id)
    (@shift_head_q F n n.+1) (@shift_head_k F n n.+1) (@shift_head_v F n n.+1)
    (with_code (tokens x)) h r 0 in
  count_on heads i = (cpm3 G M x i)%:R.
Proof.
move=> heads; have headsE r c : first_columns n.+1 heads r c = (x (ahead r c))%:R.
  by rewrite mxE valK /= mxE multi_head_shift mxE.
rewrite -(units_count x i (@ahead_inj n i)) /count_on /= headsE ahead0.
by apply: eq_bigr => c1 _; apply: eq_bigr => c2 _; rewrite !headsE.
Qed.

(* Rounding to the nearest integer, where it is unique.                       *)
Definition rounds (round : F -> F) : Prop :=
  forall (m : int) z, `|z - m%:~R| < 2%:R^-1 -> round z = m%:~R.

(** At a finite temperature with b > (N - 1) (2 D - 1), the same layer followed
    by rounding outputs the count, if any two tokens differ by at most D. *)
Theorem softened_layer_counts n H (x : 'I_n.+1 -> nat) i D f b round :
  0 < b -> f 1 = b -> f 0 = 1 -> rounds round ->
  n%:R * (2%:R * D%:R - 1) < b -> (forall t u, (x t <= x u + D)%N) -> (n.+1 <= H * H)%N ->
  count_on (map_mx round (softened_output H f (tokens x))) i = (cpm3 G M x i)%:R.
Proof.
move=> b_gt0 f1 f0 rounds_to above near le_N.
have H_gt0 : (0 < H)%N by case: (H) le_N.
have [_ recovers] := recovered_iff n b_gt0 f1 f0 D H_gt0.
suff -> : map_mx round (softened_output H f (tokens x)) = shifts_output H (tokens x).
  exact: layer_counts.
have -> : tokens x = \col_t ((x t)%:Z)%:~R by apply/matrixP => r e; rewrite !mxE.
apply/matrixP => t c; rewrite [RHS]theorem4_column [RHS]mxE [LHS]mxE.
apply: rounds_to; apply: recovers => // r u.
by rewrite ler_subl_addl -PoszD lez_nat.
Qed.
End HiddenUnits.

(* There is a modulo activation, over the rationals for instance.             *)
Lemma rat_residue M : reduces_mod M (fun q : rat => (`|numq q| %% M)%:R%R).
Proof. by move=> m; rewrite [in numq _]pmulrn numq_int absz_nat. Qed.

(* ------------------------------------------------------------------------ *)
(** * Shorter sequences: a reserved symbol *)

(* Tokens y, then the symbol pad, up to Nmax.                                 *)
Definition pad_with (pad : nat) N Nmax (y : 'I_N -> nat) (t : 'I_Nmax) : nat :=
  oapp y pad (insub (val t)).

(* A token x becomes (G + 2) x, the padding is 1.                             *)
Definition padded G N Nmax (x : 'I_N -> nat) : 'I_Nmax -> nat :=
  pad_with 1 (fun t => (G + 2) * x t).

Section Padding.
Variables (G M N Nmax : nat) (x : 'I_N -> nat).
Hypotheses (G_gt0 : 0 < G) (le_N : N <= Nmax).

Lemma padded_token (t : 'I_N) : padded G x (widen_ord le_N t) = (G + 2) * x t.
Proof. by rewrite /padded /pad_with /= valK. Qed.

Lemma padded_pad (t : 'I_Nmax) : ~~ (t < N) -> padded G x t = 1.
Proof. by move=> t_ge; rewrite /padded /pad_with insubN. Qed.

(* A sum that is not a multiple of G + 2 is not one of (G + 2) M.             *)
Lemma not_multiple a r : 0 < r -> r < G + 2 -> ((G + 2) * M %| (G + 2) * a + r) = false.
Proof.
move=> r_gt0 r_lt; apply/negP => /(dvdn_trans (dvdn_mulr M (dvdnn _))).
by rewrite dvdn_addr ?dvdn_mulr // gtnNdvd.
Qed.

(* A pair counts exactly when it is a pair of tokens that counts.             *)
Lemma hit_tokens i j1 j2 :
  hit G ((G + 2) * M) (padded G x) (widen_ord le_N i) (widen_ord le_N j1) (widen_ord le_N j2)
  = hit G M x i j1 j2.
Proof.
by rewrite /hit !padded_token mulnCA -!mulnDr dvdn_pmul2l ?addn2.
Qed.

Lemma hit_pad i (j1 j2 : 'I_Nmax) : ~~ ((j1 < N) && (j2 < N)) ->
  hit G ((G + 2) * M) (padded G x) (widen_ord le_N i) j1 j2 = false.
Proof.
have token (j : 'I_Nmax) : j < N -> exists t, padded G x j = (G + 2) * t.
  move=> lt_j; exists (x (Ordinal lt_j)).
  by rewrite -padded_token; congr padded; apply: val_inj.
rewrite /hit padded_token negb_and => pads.
have [lt1|ge1] := boolP (j1 < N); have [lt2|ge2] := boolP (j2 < N).
- by rewrite lt1 lt2 in pads.
- have [t ->] := token _ lt1; rewrite padded_pad // mulnCA -mulnDr.
  by rewrite not_multiple // addn2.
- have [t ->] := token _ lt2; rewrite padded_pad // muln1 addnAC -mulnDr.
  by rewrite not_multiple // addn2 ltnS leqnSn.
- by rewrite !padded_pad // muln1 -addnA not_multiple ?addn1 ?addn2.
Qed.

(** With the reserved symbol, G >= 1: the count for N_max tokens and modulus
    (G + 2) M is the count of the short sequence with modulus M. *)
Theorem cpm3_padded i :
  cpm3 G ((G + 2) * M) (padded G x) (widen_ord le_N i) = cpm3 G M x i.
Proof.
rewrite !cpm3E (bigID (fun j1 : 'I_Nmax => j1 < N)) /= [X in _ + X]big1 ?addn0; last first.
  by move=> j1 ge1; rewrite big1 // => j2 _; rewrite hit_pad // (negbTE ge1).
rewrite (big_ord_narrow le_N); apply: eq_bigr => j1 _.
rewrite (bigID (fun j2 : 'I_Nmax => j2 < N)) /= [X in _ + X]big1 ?addn0; last first.
  by move=> j2 ge2; rewrite hit_pad // (negbTE ge2) andbF.
by rewrite (big_ord_narrow le_N); apply: eq_bigr => j2 _; rewrite hit_tokens.
Qed.
End Padding.

(** Theorem 4 on CPM-3 for N <= N_max <= H^2: on the padded tokens the layer of
    N_max, with modulus (G + 2) M in its hidden units, outputs the count. *)
Theorem layer_counts_short (F : realFieldType) G M (residue : F -> F) n H N
    (x : 'I_N -> nat) (i : 'I_N) (le_N : N <= n.+1) :
  reduces_mod ((G + 2) * M) residue -> 0 < G -> n.+1 <= H * H ->
  count_on G residue (shifts_output H (tokens F (padded G x))) (widen_ord le_N i)
  = (cpm3 G M x i)%:R%R.
Proof.
by move=> residue_mod G_gt0 le_H; rewrite (layer_counts G residue_mod) // cpm3_padded.
Qed.

(* ------------------------------------------------------------------------ *)
(** * When the order of the pair matters *)

Section Order.
Variables (G M : nat).

(* Over all inputs of N tokens the order of the pair does not matter.         *)
Definition order_blind N : Prop :=
  forall (x : 'I_N -> nat) i j1 j2, hit G M x i j1 j2 = hit G M x i j2 j1.

(* A pair of different residues never counts in both orders.                  *)
Definition order_seen N : Prop :=
  forall (x : 'I_N -> nat) i j1 j2, x j1 <> x j2 %[mod M] ->
    hit G M x i j1 j2 -> ~~ hit G M x i j2 j1.

(* Three different tokens, and an input that gives them the values a, b, c.   *)
Definition tok0 n : 'I_n.+3 := Ordinal (isT : 0 < n.+3).
Definition tok1 n : 'I_n.+3 := Ordinal (isT : 1 < n.+3).
Definition tok2 n : 'I_n.+3 := Ordinal (isT : 2 < n.+3).
Definition three n (a b c : nat) (t : 'I_n.+3) : nat := nth 0 [:: a; b; c] t.

Lemma mod_sum a b c : G = 1 %[mod M] -> a + G * b + c = a + b + c %[mod M].
Proof.
move=> G1; rewrite -(modnDml (a + _)) -(modnDmr a) -(modnMml G) G1 modnMml mul1n.
by rewrite modnDmr modnDml.
Qed.

(** For N = n + 3 >= 3 tokens the predicate is symmetric in j1 and j2 on all
    inputs if and only if G = 1 mod M. *)
Theorem order_blind_iff n : 0 < M -> order_blind n.+3 <-> G = 1 %[mod M].
Proof.
move=> M_gt0; split=> [blind | G1 x i j1 j2]; last first.
  by rewrite /hit /dvdn !(mod_sum _ _ _ G1) addnAC.
have /esym := blind (three M.-1 1 0) (tok0 n) (tok1 n) (tok2 n).
rewrite /hit /= muln0 muln1 !addn0 addn1 prednK // dvdnn => /esym.
by move=> div; apply/eqP; rewrite -(eqn_modDl M.-1) addn1 prednK // modnn.
Qed.

(* A factor prime to M may be cancelled.                                      *)
Lemma cancel_coprime g b c : coprime g M -> g * b = g * c %[mod M] -> b = c %[mod M].
Proof.
move=> co_gM; wlog le_cb : b c / c <= b => [cancel gbc|].
  by have [/cancel|/ltnW/cancel] := leqP c b; [apply | move=> ->].
move=> /eqP; rewrite eqn_mod_dvd ?leq_mul2l ?le_cb ?orbT // -mulnBr.
by rewrite Gauss_dvdr 1?coprime_sym // => div; apply/eqP; rewrite eqn_mod_dvd.
Qed.

(** For N = n + 3 >= 3 tokens and G >= 1, every swap of different residues is
    detected if and only if G - 1 and M are coprime. *)
Theorem order_seen_iff n : 0 < G -> 0 < M -> order_seen n.+3 <-> coprime (G - 1) M.
Proof.
rewrite subn1 => G_gt0 M_gt0; have GE b : G * b = b + G.-1 * b.
  by rewrite -[in LHS](prednK G_gt0) mulSn.
split=> [seen | co_gM x i j1 j2 ne hit12]; last first.
  apply/negP => hit21; apply: ne; apply: (cancel_coprime co_gM); apply/eqP.
  have sum12 : x i + G * x j1 + x j2 = x i + x j1 + x j2 + G.-1 * x j1.
    by rewrite GE addnA addnAC.
  have sum21 : x i + G * x j2 + x j1 = x i + x j1 + x j2 + G.-1 * x j2.
    by rewrite GE addnA addnAC (addnAC (x i)).
  rewrite -(eqn_modDl (x i + x j1 + x j2)) -sum12 -sum21.
  by move: hit12 hit21; rewrite /hit /dvdn => /eqP -> /eqP ->.
apply/eqP; set d := gcdn _ _; have d_gt0 : 0 < d by rewrite gcdn_gt0 M_gt0 orbT.
have Md : M %/ d * d = M by rewrite divnK // dvdn_gcdr.
have gb : M %| G.-1 * (M %/ d) by rewrite muln_divCA_gcd dvdn_mulr.
apply/eqP; rewrite eqn_leq d_gt0 andbT leqNgt; apply/negP => d_gt1.
have b_mod : M %/ d <> 0 %[mod M].
  by rewrite mod0n modn_small ?ltn_Pdiv // => b0; move: M_gt0; rewrite -Md b0.
have := seen (three (M.-1 * (M %/ d)) (M %/ d) 0) (tok0 n) (tok1 n) (tok2 n) b_mod.
rewrite /hit /three /= GE muln0 !addn0 addnA -mulSnr prednK //.
by move=> /(_ (dvdn_add (dvdn_mulr _ (dvdnn M)) gb)); rewrite dvdn_mulr.
Qed.
End Order.

(* ------------------------------------------------------------------------ *)
(** * What fails *)

(** G > 2M does not make the task order-sensitive: for every M, G = 2M + 1
    gives a predicate that is symmetric in j1 and j2. *)
Theorem large_G_blind M n : 0 < M -> order_blind (2 * M).+1 M n.+3.
Proof. by move=> M_gt0; apply/order_blind_iff => //; rewrite -addn1 modnMDl. Qed.

(** N >= 3 is needed above: with N = 2, M = 5 and G = 3 the predicate is
    symmetric on all inputs, while 3 is not 1 mod 5. *)
Theorem two_tokens_blind : order_blind 3 5 2 /\ 3 <> 1 %[mod 5].
Proof.
have swap a b : (5 %| a + 3 * a + b) = (5 %| a + 3 * b + a).
  rewrite -[LHS](@Gauss_dvdr 5 3) //.
  rewrite (_ : 3 * _ = 5 * (2 * a) + (a + 3 * b + a)); last by ring.
  by rewrite dvdn_addr // dvdn_mulr.
split=> // x i j1 j2; rewrite /hit; have [-> //|ne12] := eqVneq j1 j2.
have [->|ne1] := eqVneq i j1; first exact: swap.
suff -> : i = j2 by rewrite swap.
apply: val_inj; move: ne12 ne1; rewrite -!val_eqE.
by case: i j1 j2 => [[|[|//]] ?] [[|[|//]] ?] [[|[|//]] ?].
Qed.

(* One of three consecutive sums is a multiple of 3.                          *)
Lemma one_of_three m : (3 %| m + 1) + (3 %| m + 2) + (3 %| m + 3) = 1.
Proof.
rewrite /dvdn -(modnDml m 1) -(modnDml m 2) -(modnDml m 3).
by case: (m %% 3) (ltn_pmod m (isT : 0 < 3)) => [|[|[|]]].
Qed.

(** The tokens (1, 2, 3) with M = 3 have the counts 3, 3, 3 for every G, so
    they cannot show that the order matters. *)
Theorem example_123 G i : cpm3 G 3 (@three 0 1 2 3) i = 3.
Proof.
rewrite cpm3E (eq_bigr (fun=> 1)) ?sum1_card ?card_ord // => j1 _.
by rewrite !big_ord_recl big_ord0 addn0 addnA /hit one_of_three.
Qed.

Lemma pad_with_const pad c N Nmax (t : 'I_Nmax) :
  pad_with pad (fun _ : 'I_N => c) t = if t < N then c else pad.
Proof. by rewrite /pad_with; case: insubP => [u -> _ | /negbTE ->]. Qed.

(** G >= 1 is needed for the reserved symbol: with G = 0, one token 0, M = 1
    and N_max = 2 the padded count is 2, not 1. *)
Theorem padding_needs_G : let x := fun _ : 'I_1 => 0 in
  cpm3 0 ((0 + 2) * 1) (padded 0 x : 'I_2 -> nat) ord0 = 2 /\ cpm3 0 1 x ord0 = 1.
Proof.
by rewrite /= !cpm3E !big_ord_recl !big_ord0 /hit /padded !pad_with_const.
Qed.

(** Zeros as padding count wrongly: one token 0, M = 2, N_max = 2 gives 4
    instead of 1, for every G. *)
Theorem zero_padding G : let x := fun _ : 'I_1 => 0 in
  cpm3 G 2 (pad_with 0 x : 'I_2 -> nat) ord0 = 4 /\ cpm3 G 2 x ord0 = 1.
Proof.
by rewrite /= !cpm3E !big_ord_recl !big_ord0 /hit !pad_with_const /= muln0.
Qed.

(** N (N - 1) units, for the pairs j1 <> j2, do not count the task: with one
    token 0 they count 0 instead of 1. *)
Theorem distinct_pairs_miss G M : let x := fun _ : 'I_1 => 0 in
  #|[pred p : 'I_1 * 'I_1 | (p.1 != p.2) && hit G M x ord0 p.1 p.2]| = 0
  /\ cpm3 G M x ord0 = 1.
Proof.
move=> x; split; last by rewrite cpm3E !big_ord1 /hit muln0 dvdn0.
by apply: eq_card0 => -[a b]; rewrite !inE /= [a]ord1 [b]ord1.
Qed.
