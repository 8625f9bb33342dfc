(* One linear head without an output projection serves one class of powers.   *)
(*                                                                            *)
(* The input is [X, I]: d columns of data X and one column per token for its  *)
(* position.  F is any field with at least three elements, and each equation  *)
(* is an equality for all X with entries in F: an identity of polynomials in  *)
(* the entries of X implies it.  With two elements the claims are false: see  *)
(* two_elements_two_classes at the end.                                       *)
From mathcomp Require Import all_ssreflect all_algebra.
From IHA Require Import Layer Theorem3.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* ------------------------------------------------------------------------ *)
(** * Words *)

(* F has an element other than 0 and 1.                                       *)
Definition three_elements (F : fieldType) := exists g : F, (g != 0) && (g != 1).

(* Rational, real and complex numbers are such fields.                        *)
Lemma three_elements_num (F : numFieldType) : three_elements F.
Proof. by exists 2%:R; rewrite pnatr_eq0 -[1]/(1%:R) eqr_nat. Qed.

(* M' is a non-zero multiple of M.                                            *)
Definition same_class (F : fieldType) m n (M M' : 'M[F]_(m, n)) :=
  exists2 t : F, t != 0 & M' = t *: M.

(* Column l of the head is the column M X e_c of a target M X, for every X.   *)
Definition head_column (F : fieldType) n d dk dv (WQ WK : 'M[F]_(d + n.+1, dk))
    (WV : 'M[F]_(d + n.+1, dv)) (l : 'I_dv) (M : 'M[F]_n.+1) (c : 'I_d) :=
  forall X : 'M[F]_(n.+1, d), let Y := with_code X in
    col l (attention id (Y *m WQ) (Y *m WK) (Y *m WV)) = M *m col c X.

(* ------------------------------------------------------------------------ *)
(** * Small facts of linear algebra *)

Section Facts.
Variable F : fieldType.

Lemma mulmx11 m (x : 'cV[F]_m) (s : 'M[F]_1) : x *m s = s 0 0 *: x.
Proof. by rewrite {1}[s]mx11_scalar mul_mx_scalar. Qed.

Lemma cV_neq0 m (v : 'cV[F]_m) : v != 0 -> exists i, v i 0 != 0.
Proof.
move=> v_neq0; apply/existsP; apply: contraR v_neq0.
rewrite negb_exists => /forallP v0; apply/eqP/colP => i; rewrite mxE.
exact/eqP/negbNE.
Qed.

Lemma delta_self m (i : 'I_m) : (delta_mx i 0 : 'cV[F]_m) i 0 = 1.
Proof. by rewrite mxE !eqxx. Qed.

Lemma col_mulmx m n p c (M : 'M[F]_(m, n)) (X : 'M_(n, p)) : col c (M *m X) = M *m col c X.
Proof. by rewrite !colE mulmxA. Qed.

Lemma tr11 (s : 'M[F]_1) : s^T = s.
Proof. by apply/matrixP => i j; rewrite !ord1 mxE. Qed.

Lemma mx_ext m n (M M' : 'M[F]_(m, n)) :
  (forall u : 'cV_n, M *m u = M' *m u) -> M = M'.
Proof.
by move=> eqM; apply/row_matrixP => i; apply/rowP => j;
   have /matrixP/(_ i 0) := eqM (delta_mx j 0); rewrite -!colE !mxE.
Qed.

Lemma mx_ext_row m n (M M' : 'M[F]_(m, n)) :
  (forall u : 'rV_m, u *m M = u *m M') -> M = M'.
Proof. by move=> eqM; apply/row_matrixP => i; rewrite !rowE eqM. Qed.

(* A linear map that vanishes wherever a non-zero linear form does not        *)
(* vanish is zero.                                                            *)
Lemma vanish_off_kernel m d (M : 'M[F]_(m, d)) (v : 'cV[F]_d) :
  v != 0 -> (forall w : 'cV_d, (w^T *m v) 0 0 *: (M *m w) = 0) -> M = 0.
Proof.
move=> v_neq0 off; have [c vc] := cV_neq0 v_neq0.
have off' (w : 'cV[F]_d) : (w^T *m v) 0 0 != 0 -> M *m w = 0.
  by move=> wv; have /eqP := off w; rewrite scaler_eq0 (negbTE wv) => /eqP.
pose w0 : 'cV[F]_d := delta_mx c 0.
have w0v : (w0^T *m v) 0 0 = v c 0 by rewrite trmx_delta -rowE mxE.
apply: mx_ext => w; rewrite mul0mx.
have [wv0|/off'//] := eqVneq ((w^T *m v) 0 0) 0.
have Mw0 : M *m w0 = 0 by apply: off'; rewrite w0v.
have : M *m (w + w0) = 0 by apply: off'; rewrite linearD mulmxDl mxE wv0 add0r w0v.
by rewrite mulmxDr Mw0 addr0.
Qed.

(* Over three elements a polynomial (s p) t^2 + (r p + q) t that vanishes for  *)
(* all t is zero.                                                             *)
Lemma quadratic_line (V : lmodType F) (s r : F) (p q : V) :
  three_elements F -> (forall t, (t * s + r) *: (t *: p) + t *: q = 0) ->
  s *: p = 0 /\ r *: p + q = 0.
Proof.
case=> g /andP[g0 g1] line.
have at_t t : t != 0 -> t *: (s *: p) + (r *: p + q) = 0.
  move=> t0; have /eqP := line t.
  rewrite [_ *: (t *: p)]scalerA [_ * t]mulrC -scalerA -scalerDr scaler_eq0 (negbTE t0).
  by rewrite scalerDl -scalerA -addrA => /eqP.
have e1 := at_t 1 (oner_neq0 F); rewrite scale1r in e1.
suff sp : s *: p = 0 by move: e1; rewrite sp add0r.
have /eqP : (g - 1) *: (s *: p) = 0.
  move: (at_t g g0); rewrite -[RHS]e1 => /addIr e.
  by rewrite scalerBl e scale1r subrr.
by rewrite scaler_eq0 subr_eq0 (negbTE g1) => /eqP.
Qed.

(* For n >= 2 a scalar matrix that has rank at most one is zero.              *)
Lemma scalar_rank1 n (t : F) (p q : 'cV[F]_n.+2) :
  t%:M + p *m q^T = 0 -> t = 0 /\ p *m q^T = 0.
Proof.
move=> e; suff t0 : t = 0 by move: e; rewrite t0 raddf0 add0r.
apply/eqP/negP => /negP t_neq0.
have : (\rank (t%:M : 'M[F]_n.+2) <= 1)%N.
  move/eqP: e; rewrite addr_eq0 => /eqP ->; rewrite -mulNmx.
  exact: leq_trans (mxrankM_maxl _ _) (rank_leq_col _).
by rewrite -scalemx1 mxrank_scale_nz ?mxrank1.
Qed.

Lemma outer_eq0 m n (p : 'cV[F]_m) (q : 'cV[F]_n) :
  p != 0 -> p *m q^T = 0 -> q = 0.
Proof.
move=> p_neq0 e; apply/colP => j; rewrite mxE; apply/eqP; apply: contraR p_neq0 => qj.
apply/eqP/colP => i; move/matrixP/(_ i j): e; rewrite !mxE big_ord1 !mxE => /eqP.
by rewrite mulf_eq0 (negbTE qj) orbF => /eqP.
Qed.

Lemma outer_eq0r m n (p : 'cV[F]_m) (q : 'cV[F]_n) :
  q != 0 -> p *m q^T = 0 -> p = 0.
Proof.
by move=> q0 /(congr1 trmx); rewrite trmx_mul trmxK trmx0 => /(outer_eq0 q0).
Qed.

Lemma same_class_sym m n (M M' : 'M[F]_(m, n)) : same_class M M' -> same_class M' M.
Proof.
by case=> t t0 ->; exists t^-1; rewrite ?invr_eq0 // scalerA mulVf // scale1r.
Qed.

Lemma same_class_trans m n (M1 M2 M3 : 'M[F]_(m, n)) :
  same_class M1 M2 -> same_class M2 M3 -> same_class M1 M3.
Proof. by case=> t t0 -> [u u0 ->]; exists (u * t); rewrite ?mulf_neq0 ?scalerA. Qed.

(* Non-zero multiples of one matrix are in one class.                         *)
Lemma same_class_multiples m n (M M' : 'M[F]_(m, n)) t :
  M' != 0 -> M' = t *: M -> same_class M M'.
Proof.
by move=> M'0 M'E; exists t => //; apply: contraNneq M'0 => t0; rewrite M'E t0 scale0r.
Qed.

Lemma same_class11 (M M' : 'M[F]_1) : M != 0 -> M' != 0 -> same_class M M'.
Proof.
rewrite [M]mx11_scalar [M']mx11_scalar; move: (M 0 0) (M' 0 0) => s t s0 t0.
apply: (same_class_multiples (t := t / s)) => //; rewrite scale_scalar_mx divfK //.
by apply: contraNneq s0 => ->; rewrite raddf0.
Qed.

End Facts.

(* ------------------------------------------------------------------------ *)
(** * Separating the degrees *)

(* S(X) of a head with Q K^T = [[B, C], [D, E]], applied to a column.         *)
Definition scores (F : fieldType) N d (B : 'M[F]_d) (C : 'M_(d, N)) (D : 'M_(N, d))
    (E : 'M_N) (X : 'M_(N, d)) : 'M_N :=
  X *m B *m X^T + X *m C + D *m X^T + E.

Section TwoRows.
Variables (F : fieldType) (N d : nat) (T : finType) (B : T -> 'M[F]_d).
Variables (C : T -> 'M[F]_(d, N)) (D : T -> 'M[F]_(N, d)) (E : T -> 'M[F]_N).
Variables (v1 : T -> 'cV[F]_d) (v0 : T -> 'cV[F]_N) (a b : 'I_N).
Hypothesis a_neq_b : a != b.

(* The input with row u at a, row w at b and zeros elsewhere.                 *)
Let X (u w : 'rV[F]_d) : 'M_(N, d) := delta_mx a 0 *m u + delta_mx b 0 *m w.

(* Row a of S(X)(X v1 + v0) is a part that depends on u only, a part that     *)
(* depends on w only, and a mixed part that is linear in u.                   *)
Let u_part t u : 'M[F]_1 :=
  (u *m B t + row a (D t)) *m u^T *m (u *m v1 t + row a (v0 t))
  + (u *m C t + row a (E t)) *m delta_mx a 0 *m (u *m v1 t) + u *m C t *m v0 t.
Let w_part t w : 'M[F]_1 :=
  row a (D t) *m w^T *m (w *m v1 t + row b (v0 t))
  + row a (E t) *m delta_mx b 0 *m (w *m v1 t) + row a (E t) *m v0 t.
Let mixed t w : 'cV[F]_d :=
  B t *m w^T *m (w *m v1 t + row b (v0 t)) + col b (C t) *m (w *m v1 t).

Lemma row_two t u w :
  row a (scores (B t) (C t) (D t) (E t) (X u w) *m (X u w *m v1 t + v0 t)) =
  u_part t u + w_part t w + u *m mixed t w.
Proof.
have ab : (a == b) = false by apply/negbTE.
have rowX u' w' i : row i (X u' w') = (i == a)%:R *: u' + (i == b)%:R *: w'.
  apply/rowP => j; rewrite !mxE !big_ord1 !mxE !eqxx !andbT.
  by case: (i == a); case: (i == b).
have aX : row a (X u w) = u by rewrite rowX eqxx ab scale1r scale0r addr0.
have bX : row b (X u w) = w by rewrite rowX eqxx eq_sym ab scale1r scale0r add0r.
have trX (z : 'cV[F]_N) : (X u w)^T *m z = u^T *m row a z + w^T *m row b z.
  by rewrite linearD /= !trmx_mul !trmx_delta mulmxDl -!mulmxA -!rowE.
have XE (z : 'rV[F]_N) (y : 'cV[F]_d) :
    z *m (X u w *m y) = z *m delta_mx a 0 *m (u *m y) + z *m delta_mx b 0 *m (w *m y).
  by rewrite /X mulmxDl mulmxDr !mulmxA.
rewrite /u_part /w_part /mixed.
move: (X u w) aX bX trX XE (B t) (C t) (D t) (E t) (v1 t) (v0 t).
move=> Z aX bX trX XE B' C' D' E' v1' v0'.
have SE (z : 'cV[F]_N) : row a (scores B' C' D' E' Z *m z) =
    (u *m B' + row a D') *m (Z^T *m z) + (u *m C' + row a E') *m z.
  rewrite row_mul /scores !linearD /= !row_mul aX !mulmxDl !mulmxA.
  by rewrite [LHS](ACl (1*3*2*4)%AC) /= !addrA.
have rowz i : row i (Z *m v1' + v0') = row i Z *m v1' + row i v0'.
  by rewrite linearD /= row_mul.
rewrite SE trX !rowz aX bX (mulmxDr u).
set alpha := u *m v1' + row a v0'; set beta := w *m v1' + row b v0'.
rewrite colE (mulmxDr _ (Z *m v1')) XE (mulmxDr _ (u^T *m alpha)).
move: (u *m v1') (w *m v1') alpha beta => mu nu alpha beta; rewrite !mulmxA.
rewrite (mulmxDl (u *m B') _ w^T) (mulmxDl _ _ beta) (mulmxDl _ _ (delta_mx b 0)).
rewrite (mulmxDl _ _ nu) (mulmxDl _ _ v0').
by rewrite [LHS](AC (1*2*(1*2*2)) (1*4*7*(3*6*8)*(2*5)))%AC.
Qed.

(* If row a of the sum of the columns of the heads is row a of M X e_c for    *)
(* all X, the mixed part vanishes, and the part in w is that of the target.   *)
Lemma two_row_sums (M : 'M[F]_N) (c : 'I_d) :
  (forall Z : 'M_(N, d),
     \sum_t scores (B t) (C t) (D t) (E t) Z *m (Z *m v1 t + v0 t) = M *m col c Z) ->
  forall w : 'rV[F]_d,
    \sum_t (B t *m w^T *m (w *m v1 t + row b (v0 t)) + col b (C t) *m (w *m v1 t)) = 0 /\
    \sum_t (row a (D t) *m w^T *m (w *m v1 t + row b (v0 t))
            + row a (E t) *m delta_mx b 0 *m (w *m v1 t))
      = row a M *m delta_mx b 0 *m (w *m delta_mx c 0).
Proof.
move=> target; pose U u := \sum_t u_part t u; pose V w := \sum_t w_part t w.
pose m w := \sum_t mixed t w.
have key u w : U u + V w + u *m m w =
    row a M *m delta_mx a 0 *m (u *m delta_mx c 0)
    + row a M *m delta_mx b 0 *m (w *m delta_mx c 0).
  transitivity (row a (M *m col c (X u w))).
    rewrite -target [RHS]raddf_sum mulmx_sumr -!big_split /=.
    by apply: eq_bigr => t _; rewrite row_two.
  by rewrite colE mulmxA row_mul row_mul /X mulmxDr mulmxDl !mulmxA.
have U0 : U 0 = 0.
  by rewrite /U big1 // => t _; rewrite /u_part trmx0 !(mulmx0, mul0mx, addr0).
have m0 : m 0 = 0.
  by rewrite /m big1 // => t _; rewrite /mixed trmx0 !(mulmx0, mul0mx, addr0).
have V0 : V 0 = 0.
  by have := key 0 0; rewrite U0 m0 !(mul0mx, mulmx0, addr0, add0r).
have UE u : U u = row a M *m delta_mx a 0 *m (u *m delta_mx c 0).
  by have := key u 0; rewrite V0 m0 !(mul0mx, mulmx0, addr0).
have VE w : V w = row a M *m delta_mx b 0 *m (w *m delta_mx c 0).
  by have := key 0 w; rewrite U0 !(mul0mx, mulmx0, addr0, add0r).
move=> w; split.
  apply: mx_ext_row => u; rewrite mulmx0; apply: (@addrI _ (U u + V w)).
  by rewrite addr0 {2}UE {2}VE -key.
have av0 : \sum_t row a (E t) *m v0 t = 0.
  rewrite -[RHS]V0; apply: eq_bigr => t _.
  by rewrite /w_part trmx0 !(mulmx0, mul0mx, addr0, add0r).
by rewrite -VE -[LHS]addr0 -[X in _ + X]av0 -big_split.
Qed.
End TwoRows.

(* The same for one head.                                                     *)
Lemma two_row_equations (F : fieldType) N d (B : 'M[F]_d) (C : 'M[F]_(d, N))
    (D : 'M[F]_(N, d)) (E : 'M[F]_N) (v1 : 'cV[F]_d) (v0 : 'cV[F]_N) (a b : 'I_N)
    (M : 'M[F]_N) (c : 'I_d) : a != b ->
  (forall Z : 'M_(N, d), scores B C D E Z *m (Z *m v1 + v0) = M *m col c Z) ->
  forall w : 'rV_d,
    B *m w^T *m (w *m v1 + row b v0) + col b C *m (w *m v1) = 0 /\
    row a D *m w^T *m (w *m v1 + row b v0) + row a E *m delta_mx b 0 *m (w *m v1)
      = row a M *m delta_mx b 0 *m (w *m delta_mx c 0).
Proof.
move=> ab target w; have := @two_row_sums _ _ _ [finType of 'I_1] (fun=> B) (fun=> C)
  (fun=> D) (fun=> E) (fun=> v1) (fun=> v0) a b ab M c _ w.
by rewrite !big_ord1; apply=> Z; rewrite big_ord1.
Qed.

(* Every token has another one beside it when there are at least two.         *)
Lemma other_token n (a : 'I_n.+2) : exists b : 'I_n.+2, a != b.
Proof.
by have [-> | a_neq] := eqVneq a ord0; [exists (lift ord0 ord0) | exists ord0].
Qed.

Section Degrees.
Variables (F : fieldType) (n d : nat) (B : 'M[F]_d) (C : 'M[F]_(d, n.+2)).
Variables (D : 'M[F]_(n.+2, d)) (E : 'M[F]_n.+2) (v1 : 'cV[F]_d) (v0 : 'cV[F]_n.+2).
Variables (M : 'M[F]_n.+2) (c : 'I_d).
Hypothesis F_three : three_elements F.
Hypothesis target : forall X : 'M_(n.+2, d),
  scores B C D E X *m (X *m v1 + v0) = M *m col c X.

Let lam (w : 'cV[F]_d) : F := (w^T *m v1) 0 0.

Lemma lamZ t w : lam (t *: w) = t * lam w.
Proof. by rewrite /lam linearZ /= -scalemxAl mxE. Qed.

Lemma lam_neq0 : v1 != 0 -> exists w, lam w != 0.
Proof.
case/cV_neq0 => c' v1c'; exists (delta_mx c' 0).
by rewrite /lam trmx_delta -rowE mxE.
Qed.

Lemma column_equation b w : (lam w + v0 b 0) *: (B *m w) + lam w *: col b C = 0.
Proof.
have [a ab] := other_token b; rewrite eq_sym in ab.
have [e _] := two_row_equations ab target w^T; move: e.
by rewrite trmxK !mulmx11 [(_ + row b v0) 0 0]mxE [row b v0 0 0]mxE.
Qed.

Lemma row_equation a b w : a != b ->
  (row a D *m w) 0 0 * (lam w + v0 b 0) + E a b * lam w = M a b * w c 0.
Proof.
move=> ab; have [_ /matrixP/(_ 0 0)] := two_row_equations ab target w^T.
rewrite trmxK -!colE !mulmx11 /lam; move: (row a D *m w) (w^T *m v1) => x y.
by rewrite !mxE mulrC (mulrC (y 0 0)) [in RHS]mulrC.
Qed.

(* The equations of degree 3 and 2 in X, column by column.                    *)
Lemma cubic_quadratic b w :
  lam w *: (B *m w) = 0 /\ v0 b 0 *: (B *m w) + lam w *: col b C = 0.
Proof.
apply: quadratic_line => // t; have := column_equation b (t *: w).
by rewrite lamZ -scalemxAr -[(t * _) *: col b C]scalerA.
Qed.

(* v1 != 0 forces B = 0, then C = 0, then D = 0.                              *)
Lemma no_bilinear_part : v1 != 0 -> B = 0.
Proof.
by move=> v1_neq0; apply: (vanish_off_kernel v1_neq0) => w; have [] := cubic_quadratic ord0 w.
Qed.

Lemma no_key_part : v1 != 0 -> C = 0.
Proof.
move=> v1_neq0; have [w lam_w] := lam_neq0 v1_neq0.
apply/matrixP => i b; have [_ ] := cubic_quadratic b w.
rewrite (no_bilinear_part v1_neq0) mul0mx scaler0 add0r => /eqP.
by rewrite scaler_eq0 (negbTE lam_w) => /eqP/colP/(_ i); rewrite !mxE.
Qed.

Lemma no_query_part : v1 != 0 -> D = 0.
Proof.
move=> v1_neq0; apply/row_matrixP => a; rewrite row0.
apply: (vanish_off_kernel v1_neq0) => w; have [b ab] := other_token a.
apply/matrixP => i j; rewrite !ord1 mxE [RHS]mxE.
have [|//] := @quadratic_line F [lmodType F of F^o] (lam w) (v0 b 0) ((row a D *m w) 0 0)
  (E a b * lam w - M a b * w c 0) F_three => t.
have := row_equation (t *: w) ab; rewrite lamZ -scalemxAr.
move: (row a D *m w) => x; rewrite [(t *: x) 0 0]mxE [(t *: w) c 0]mxE => e.
rewrite /GRing.scale /= mulrBr addrA mulrC ![t * (_ * _)]mulrCA -e.
exact: subrr.
Qed.

(* So does v0 != 0 when v1 = 0, for B.                                        *)
Lemma no_bilinear_part0 : v1 = 0 -> v0 != 0 -> B = 0.
Proof.
move=> v1_0 v0_neq0; have [b v0b] := cV_neq0 v0_neq0.
apply: mx_ext => w; rewrite mul0mx; have [_ /eqP] := cubic_quadratic b w.
by rewrite /lam v1_0 mulmx0 mxE scale0r addr0 scaler_eq0 (negbTE v0b) => /eqP.
Qed.

(* The column at X = x w^T: what a data column (v1 != 0) and a position        *)
(* column (v1 = 0) can serve.                                                 *)
Lemma at_rank_one (x : 'cV[F]_n.+2) (w : 'cV[F]_d) : M *m col c (x *m w^T) = w c 0 *: (M *m x).
Proof. by rewrite colE -mulmxA -colE mulmx11 !mxE scalemxAr. Qed.

Lemma data_column (w : 'cV[F]_d) : v1 != 0 -> lam w *: E = w c 0 *: M.
Proof.
move=> v1_neq0; apply: mx_ext => x.
have S0 X : scores B C D E X = E.
  rewrite /scores no_bilinear_part ?no_key_part ?no_query_part //.
  by rewrite !mulmx0 !mul0mx !add0r.
have Ev0 : E *m v0 = 0.
  by have := target 0; rewrite S0 mul0mx add0r => ->; rewrite col0 mulmx0.
have := target (x *m w^T); rewrite S0 mulmxDr Ev0 addr0 at_rank_one -!scalemxAl => <-.
by rewrite -[x *m w^T *m v1]mulmxA mulmx11 -scalemxAr.
Qed.

Lemma position_column (w : 'cV[F]_d) : v1 = 0 -> v0 != 0 ->
  ((w^T *m (C *m v0)) 0 0)%:M + D *m w *m v0^T = w c 0 *: M.
Proof.
move=> v1_0 v0_neq0; apply: mx_ext => x; have B0 := no_bilinear_part0 v1_0 v0_neq0.
have SE X : M *m col c X = X *m (C *m v0) + D *m (X^T *m v0) + E *m v0.
  by rewrite -target /scores B0 v1_0 !mulmx0 mul0mx !add0r !mulmxDl !mulmxA.
have Ev0 : E *m v0 = 0.
  by have := SE 0; rewrite col0 trmx0 !mul0mx !mulmx0 !add0r => <-.
rewrite -scalemxAl -at_rank_one SE Ev0 addr0 mulmxDl mul_scalar_mx trmx_mul trmxK.
rewrite -[x *m w^T *m _]mulmxA mulmx11 -!mulmxA; congr (_ + D *m (w *m _)).
by rewrite -[LHS]tr11 trmx_mul trmxK.
Qed.

End Degrees.

(* ------------------------------------------------------------------------ *)
(** * Powers that differ from scalars by rank one *)

Section RankOne.
Variables (F : fieldType) (n : nat).
Implicit Types (A : 'M[F]_n.+2) (p q u v w : 'cV[F]_n.+2) (g e : F).

Let dot v w : F := (v^T *m w) 0 0.
Let parallel v w := v = 0 \/ exists t, w = t *: v.

Lemma parallel_sym v w : parallel v w -> parallel w v.
Proof.
case=> [-> | [t ->]]; first by right; exists 0; rewrite scale0r.
have [-> | t0] := eqVneq t 0; first by left; rewrite scale0r.
by right; exists t^-1; rewrite scalerA mulVf ?scale1r.
Qed.

Lemma dotZ t v w : dot (t *: v) w = t * dot v w.
Proof. by rewrite /dot linearZ /= -scalemxAl mxE. Qed.
Lemma dotD u v w : dot (u + v) w = dot u w + dot v w.
Proof. by rewrite /dot linearD /= mulmxDl mxE. Qed.

Lemma outer_mul p q v w : (p *m v^T) *m (q *m w^T) = dot v q *: (p *m w^T).
Proof. by rewrite mulmxA -[p *m _ *m q]mulmxA mulmx11 scalemxAl. Qed.

(* Products of g I + p v^T when the products of the second parts vanish.      *)
Lemma unipotent_mul g e p v w : dot v p = 0 ->
  (g%:M + p *m v^T) * (e%:M + p *m w^T) = (g * e)%:M + p *m (g *: w + e *: v)^T.
Proof.
move=> vp; rewrite -[LHS]/(_ *m _) mulmxDl !mulmxDr outer_mul vp scale0r addr0.
rewrite !mul_scalar_mx mul_mx_scalar scale_scalar_mx linearD !linearZ /= mulmxDr.
by rewrite -!scalemxAr addrA.
Qed.

Lemma unipotent_unit g p v : dot v p = 0 -> g != 0 ->
  g%:M + p *m v^T \is a GRing.unit.
Proof.
move=> vp g0; pose inv := g^-1%:M + p *m (- g^-1 ^+ 2 *: v)^T.
suff : (g%:M + p *m v^T) *m inv = 1%:M by case/mulmx1_unit.
rewrite [_ *m _]unipotent_mul // mulfV // scalerA mulrN expr2 mulrA mulfV //.
by rewrite mul1r scaleNr addNr trmx0 mulmx0 addr0.
Qed.

Lemma unipotent_clash A g p v w i j : (0 < i)%N -> dot v p = 0 -> dot w p = 0 ->
  g != 0 ->  A ^+ i = g%:M + p *m v^T -> A ^+ j <> 0%:M + p *m w^T.
Proof.
move=> i0 vp wp g0 Ai Aj; have : A ^+ (i * (j * 2)) \is a GRing.unit.
  by rewrite exprM unitrX // Ai unipotent_unit.
have Aj2 : A ^+ (j * 2) = 0.
  by rewrite exprM Aj expr2 unipotent_mul // mulr0 !scale0r addr0 trmx0 mulmx0 raddf0 addr0.
by rewrite mulnC exprM Aj2 expr0n eqn0Ngt i0 unitr0.
Qed.

Lemma unipotent_inj g e p v w : p != 0 ->
  g%:M + p *m v^T = e%:M + p *m w^T -> g = e /\ v = w.
Proof.
move=> p0 /eqP; rewrite -subr_eq0 opprD addrACA -raddfB /= -mulmxBr -linearB /=.
move=> /eqP/scalar_rank1[/subr0_eq -> /(outer_eq0 p0)/subr0_eq ->].
by [].
Qed.

(* Euclid's algorithm on the exponents i, j.                                  *)
Lemma parallel_unipotent A p i j g e v w : p != 0 -> dot v p = 0 -> dot w p = 0 ->
    g != 0 -> e != 0 -> (0 < i)%N -> (0 < j)%N ->
    A ^+ i = g%:M + p *m v^T -> A ^+ j = e%:M + p *m w^T -> parallel v w.
Proof.
move=> p0; have [m] := ubnP (i + j); elim: m i j g e v w => // m IH i j g e v w.
wlog ij : i j g e v w / (i <= j)%N => [wl le vp wp g0 e0 i0 j0 Ai Aj|].
  have /orP[ij|ij] := leq_total i j; first exact: (wl i j g e v w).
  by apply: parallel_sym; apply: (wl j i e g w v); rewrite // addnC.
move=> le vp wp g0 e0 i0 j0 Ai Aj; have [eij|neij] := eqVneq i j.
  move: Aj; rewrite -eij Ai => /(unipotent_inj p0)[_ ->]; right; exists 1.
  by rewrite scale1r.
have lij : (i < j)%N by rewrite ltn_neqAle neij.
pose u := g^-1 *: (w - (e / g) *: v).
have wE : w = g *: u + (e / g) *: v by rewrite scalerA mulfV // scale1r subrK.
have up : dot u p = 0.
  by rewrite dotZ dotD -scaleN1r scalerA dotZ vp wp mulr0 addr0 mulr0.
have Au : A ^+ (j - i) = (e / g)%:M + p *m u^T.
  have iA : A ^+ i \is a GRing.unit by rewrite Ai unipotent_unit.
  apply: (mulIr iA); rewrite -exprD subnK // Ai Aj unipotent_mul // -mulrA mulVf // mulr1.
  by rewrite [_ *: v + _]addrC -wE.
have : parallel v u.
  apply: (IH i (j - i)%N g (e / g)); rewrite ?subn_gt0 ?mulf_neq0 ?invr_eq0 //.
  rewrite subnKC //; move: le i0; rewrite ltnS; case: (i) => // i' le _.
  by apply: leq_trans le; rewrite addSn ltnS leq_addl.
case=> [-> | [t uE]]; first by left.
by right; exists (g * t + e / g); rewrite wE uE scalerDl scalerA.
Qed.

(** If two positive powers of A are scalar matrices plus p v^T and p w^T with
    the same p, then v and w are proportional (any field). *)
Lemma parallel_rank_one A p i j g e v w : p != 0 -> (0 < i)%N -> (0 < j)%N ->
  A ^+ i = g%:M + p *m v^T -> A ^+ j = e%:M + p *m w^T -> parallel v w.
Proof.
wlog ij : i j g e v w / (i <= j)%N => [wl p0 i0 j0 Ai Aj|].
  have /orP[ij|ij] := leq_total i j; first exact: (wl i j g e v w).
  by apply: parallel_sym; apply: (wl j i e g w v).
move=> p0 i0 j0 Ai Aj.
have dots : dot v p *: w = dot w p *: v.
  have comS (M : 'M[F]_n.+2) t : GRing.comm M t%:M by exact: scalar_mxC.
  have : (A ^+ i - g%:M) * (A ^+ j - e%:M) = (A ^+ j - e%:M) * (A ^+ i - g%:M).
    apply: commrB => //; apply/commr_sym/commrB => //.
    exact/commrX/commr_sym/commrX.
  rewrite Ai Aj ![_%:M + _]addrC !addrK -[_ * _]/(_ *m _) -[X in _ = X]/(_ *m _).
  rewrite !outer_mul => comm_outer; apply/subr0_eq/(outer_eq0 p0).
  by rewrite linearB /= mulmxBr !linearZ /= comm_outer scalerN subrr.
have [vp|vp] := eqVneq (dot v p) 0; last first.
  by right; exists ((dot v p)^-1 * dot w p); rewrite -scalerA -dots scalerA mulVf // scale1r.
have [wp|wp] := eqVneq (dot w p) 0; last first.
  by left; apply/eqP; move/eqP: dots; rewrite vp scale0r eq_sym scaler_eq0 (negbTE wp).
have [e0|e_neq0] := eqVneq e 0; have [g0|g_neq0] := eqVneq g 0.
- have [r pr] := cV_neq0 p0.
  right; exists ((A ^+ (j - i) *m p) r 0 / p r 0); apply/colP => m; rewrite mxE.
  have /matrixP/(_ r m) : p *m w^T = A ^+ (j - i) *m p *m v^T.
    have Ai0 : A ^+ i = p *m v^T by rewrite Ai g0 raddf0 add0r.
    have Aj0 : A ^+ j = p *m w^T by rewrite Aj e0 raddf0 add0r.
    by rewrite -Aj0 -mulmxA -Ai0 -[in LHS](subnK ij) exprD.
  rewrite !mxE !big_ord1 !mxE => pw; apply: (mulfI pr); rewrite pw.
  by rewrite mulrA mulrCA mulfV // mulr1.
- by case: (unipotent_clash i0 vp wp g_neq0 Ai (etrans Aj _)); rewrite e0.
- by case: (unipotent_clash j0 wp vp e_neq0 Aj (etrans Ai _)); rewrite g0.
- exact: (parallel_unipotent p0 vp wp g_neq0 e_neq0 i0 j0 Ai Aj).
Qed.

(* The powers of the form (l.v) I + p v^T, with p and l fixed, are one class. *)
(* The identity is not among them.                                            *)
Lemma one_not_rank_one p l v : p != 0 -> 1 <> (dot l v)%:M + p *m v^T.
Proof.
move=> p0 /eqP; rewrite -subr_eq0 opprD addrA -raddfB /= -mulmxN -linearN /=.
move=> /eqP/scalar_rank1[lv /(outer_eq0 p0)/eqP]; rewrite oppr_eq0 => /eqP v0.
by move/eqP: lv; rewrite v0 /dot mulmx0 mxE subr0 oner_eq0.
Qed.

Lemma rank_one_class A p l v w i j : p != 0 -> A ^+ i != 0 ->
  A ^+ i = (dot l v)%:M + p *m v^T -> A ^+ j = (dot l w)%:M + p *m w^T ->
  exists t, A ^+ j = t *: A ^+ i.
Proof.
move=> p0 Ai0 Ai Aj.
have pos m u : A ^+ m = (dot l u)%:M + p *m u^T -> (0 < m)%N.
  by case: m => // /(one_not_rank_one p0).
have [v0 | [t wE]] := parallel_rank_one p0 (pos _ _ Ai) (pos _ _ Aj) Ai Aj.
  by move: Ai0; rewrite Ai v0 /dot mulmx0 mxE trmx0 mulmx0 raddf0 addr0 eqxx.
have dot_t : dot l (t *: v) = t * dot l v by rewrite /dot -scalemxAr mxE.
exists t; rewrite Aj Ai wE dot_t scalerDr scale_scalar_mx; congr (_ + _).
by rewrite [(t *: v)^T]linearZ /= -scalemxAr.
Qed.

End RankOne.

(* ------------------------------------------------------------------------ *)
(** * One head, one class *)

Section OneClass.
Variables (F : fieldType) (n d : nat) (A : 'M[F]_n.+2) (B : 'M[F]_d) (C : 'M[F]_(d, n.+2)).
Variables (D : 'M[F]_(n.+2, d)) (E : 'M[F]_n.+2).
Hypothesis F_three : three_elements F.

(* The column (v1, v0) of the head is the column M X e_c.                     *)
Let serves (v1 : 'cV[F]_d) (v0 : 'cV[F]_n.+2) (M : 'M[F]_n.+2) (c : 'I_d) := forall X : 'M_(n.+2, d),
  scores B C D E X *m (X *m v1 + v0) = M *m col c X.

Lemma serves_v0 v1 v0 M c : serves v1 v0 M c -> M != 0 -> v1 = 0 -> v0 != 0.
Proof.
move=> sM M0 v1_0; apply: contraNneq M0 => v0_0; apply/eqP; apply: mx_ext => x.
have := sM (x *m (delta_mx c 0)^T); rewrite at_rank_one v1_0 v0_0 mulmx0 addr0 !mulmx0.
by rewrite delta_self scale1r mul0mx => <-.
Qed.

(* A data column serves multiples of E; then all columns are data columns.    *)
Lemma serves_data v1 v0 M c v1' v0' M' c' : serves v1 v0 M c -> v1 != 0 ->
  serves v1' v0' M' c' -> M' != 0 -> exists2 t, t != 0 & M' = t *: E.
Proof.
move=> sM v1_neq0 sM' M'_neq0.
have [v1'_0|v1'_neq0] := eqVneq v1' 0.
  have := position_column F_three sM' (delta_mx c' 0) v1'_0 (serves_v0 sM' M'_neq0 v1'_0).
  rewrite (no_key_part F_three sM v1_neq0) (no_query_part F_three sM v1_neq0).
  rewrite !mul0mx mulmx0 addr0 mxE raddf0 delta_self scale1r => M'0.
  by rewrite -M'0 eqxx in M'_neq0.
have := data_column F_three sM' (delta_mx c' 0) v1'_neq0.
rewrite delta_self scale1r => M'E; exists (((delta_mx c' 0 : 'cV[F]_d)^T *m v1') 0 0) => //.
by apply: contraNneq M'_neq0 => t0; rewrite -M'E t0 scale0r.
Qed.

(* A position column serves (l.v0) I + p v0^T, with l row c of C and p column *)
(* c of D; if it has another c, the same head serves scalar matrices.         *)
Lemma serves_position v0 M c : serves 0 v0 M c -> M != 0 ->
  M = ((row c C *m v0) 0 0)%:M + col c D *m v0^T.
Proof.
move=> sM M0; have := position_column F_three sM (delta_mx c 0) erefl (serves_v0 sM M0 erefl).
by rewrite delta_self scale1r => <-; rewrite trmx_delta mulmxA -rowE colE.
Qed.

Lemma position_other v0 M c c' : serves 0 v0 M c -> M != 0 -> c' != c -> col c' D = 0.
Proof.
move=> sM M0 c'c; have v0_neq0 := serves_v0 sM M0 erefl.
have := position_column F_three sM (delta_mx c' 0) erefl v0_neq0.
rewrite [_ c 0]mxE eq_sym (negbTE c'c) scale0r => /scalar_rank1[_].
by rewrite -colE => /(outer_eq0r v0_neq0).
Qed.

Lemma serves_one_class v1 v0 c i v1' v0' c' j :
  serves v1 v0 (A ^+ i) c -> serves v1' v0' (A ^+ j) c' ->
  A ^+ i != 0 -> A ^+ j != 0 -> same_class (A ^+ i) (A ^+ j).
Proof.
move=> si sj Ai0 Aj0.
have data v v' M c0 : serves v v' M c0 -> v != 0 -> same_class (A ^+ i) (A ^+ j).
  move=> sM v_neq0; have [t t0 Ai] := serves_data sM v_neq0 si Ai0.
  have [u u0 Aj] := serves_data sM v_neq0 sj Aj0.
  have Ei : same_class E (A ^+ i) by exists t.
  by apply: (same_class_trans (same_class_sym Ei)); exists u.
have [v1_0|/(data _ _ _ _ si)//] := eqVneq v1 0.
have [v1'_0|/(data _ _ _ _ sj)//] := eqVneq v1' 0.
rewrite v1_0 in si; rewrite v1'_0 in sj.
have Ai := serves_position si Ai0; have Aj := serves_position sj Aj0.
have scalars g e : A ^+ i = g%:M -> A ^+ j = e%:M -> same_class (A ^+ i) (A ^+ j).
  move=> Ag Ae; apply: (same_class_multiples (t := e / g)) => //.
  rewrite Ag Ae scale_scalar_mx divfK //; apply: contraNneq Ai0 => g0.
  by rewrite Ag g0 raddf0.
have [cc|cc] := eqVneq c' c; last first.
  apply: (scalars ((row c C *m v0) 0 0) ((row c' C *m v0') 0 0)).
    by rewrite {1}Ai (position_other sj Aj0) 1?eq_sym // mul0mx addr0.
  by rewrite {1}Aj (position_other si Ai0) // mul0mx addr0.
rewrite cc in Aj; have [p0|p0] := eqVneq (col c D) 0.
  rewrite p0 !mul0mx !addr0 in Ai Aj; exact: scalars Ai Aj.
have [t Ajt] : exists t, A ^+ j = t *: A ^+ i.
  by apply: (rank_one_class (l := (row c C)^T) p0 Ai0); rewrite trmxK; [exact: Ai | exact: Aj].
exact: same_class_multiples Aj0 Ajt.
Qed.

End OneClass.

(* A head on [X, I] in its four blocks: W_Q W_K^T = [[B, C], [D, E]].         *)
Section Blocks.
Variables (F : fieldType) (n d dk dv : nat).
Variables (WQ WK : 'M[F]_(d + n.+1, dk)) (WV : 'M[F]_(d + n.+1, dv)).
Let G := WQ *m WK^T.

Lemma scores_blocks (X : 'M[F]_(n.+1, d)) :
  (with_code X *m WQ) *m (with_code X *m WK)^T =
  scores (ulsubmx G) (ursubmx G) (dlsubmx G) (drsubmx G) X.
Proof.
rewrite trmx_mul mulmxA -[_ *m WQ *m _]mulmxA -/G -{1}(submxK G).
rewrite mul_row_block !mul1mx tr_row_mx mul_row_col trmx1 mulmx1 mulmxDl.
by rewrite addrACA addrA.
Qed.

Lemma value_column (X : 'M[F]_(n.+1, d)) l :
  col l (with_code X *m WV) = X *m col l (usubmx WV) + col l (dsubmx WV).
Proof. by rewrite -{1}(vsubmxK WV) mul_row_col mul1mx linearD /= !colE mulmxA. Qed.

Lemma head_column_blocks l M c : head_column WQ WK WV l M c <->
  forall X, scores (ulsubmx G) (ursubmx G) (dlsubmx G) (drsubmx G) X
            *m (X *m col l (usubmx WV) + col l (dsubmx WV)) = M *m col c X.
Proof.
suff headE X : let Y := with_code X in
    col l (attention id (Y *m WQ) (Y *m WK) (Y *m WV)) =
    scores (ulsubmx G) (ursubmx G) (dlsubmx G) (drsubmx G) X
    *m (X *m col l (usubmx WV) + col l (dsubmx WV)).
  by split=> sM X /=; have := sM X; rewrite /= headE.
by rewrite /= /attention scores_blocks -value_column !colE !mulmxA.
Qed.
End Blocks.

(** Theorem.  Over a field with at least three elements, whatever A, the sizes
    and the weights: without an output projection, two non-zero powers of A of
    which one linear head holds columns A^i X e_c and A^j X e_c' are multiples
    of one another. *)
Theorem one_head_one_class (F : fieldType) n d dk dv (A : 'M[F]_n.+1)
    (WQ WK : 'M[F]_(d + n.+1, dk)) (WV : 'M[F]_(d + n.+1, dv)) l l' c c' i j :
  three_elements F ->
  head_column WQ WK WV l (A ^+ i) c -> head_column WQ WK WV l' (A ^+ j) c' ->
  A ^+ i != 0 -> A ^+ j != 0 -> same_class (A ^+ i) (A ^+ j).
Proof.
move=> F_three si sj Ai0 Aj0; case: n => [|n] in A WQ WK WV si sj Ai0 Aj0 *.
  exact: same_class11.
move/head_column_blocks: si => si; move/head_column_blocks: sj => sj.
by have := serves_one_class F_three si sj; apply.
Qed.

(* ------------------------------------------------------------------------ *)
(** * How many heads a bank I, A, ..., A^(k-1) needs without a projection *)

(* Column numbers of a row of blocks of one width.                            *)
Lemma rank_val m e (i : 'I_m) (c : 'I_e) :
  tagnat.Rank i c = (i * e + c)%N :> nat.
Proof.
rewrite tagnat.RankEsum; congr (_ + c)%N.
by rewrite -(big_ord_widen m (fun=> e)) 1?ltnW // sum_nat_const card_ord.
Qed.

Lemma first_columns_column (R : ringType) N H dv k d (O : 'I_H -> 'M[R]_(N, dv))
    (T : 'I_k -> 'M[R]_(N, d)) (h : 'I_H) (l : 'I_dv) (i : 'I_k) (c : 'I_d) :
  first_columns _ (\mxrow_h O h) = \mxrow_i T i ->
  (h * dv + l = i * d + c)%N -> col l (O h) = col c (T i).
Proof.
move=> /matrixP eq_columns lc; apply/colP => a; rewrite !mxE.
have := eq_columns a (tagnat.Rank i c); rewrite !mxE tagnat.Rank1K tagnat.Rank2K cast_ord_id => <-.
have -> : val (tagnat.Rank i c) = val (tagnat.Rank h l).
  by rewrite [LHS]rank_val -lc; apply/esym/rank_val.
by rewrite valK /= mxE tagnat.Rank1K tagnat.Rank2K cast_ord_id.
Qed.

Section Counting.
Variables (F : fieldType) (n d dk H k : nat) (A : 'M[F]_n.+1).
Hypothesis F_three : three_elements F.
Variables (WQ WK : 'I_H -> 'M[F]_(d.+1 + n.+1, dk)).

(** Free order, every head of its own width: as many heads as there are classes
    among the non-zero powers.  Here e lists exponents below k of non-zero powers
    no two of which are in one class. *)
Theorem free_heads_bound (dv : 'I_H -> nat) (WV : forall h, 'M[F]_(d.+1 + n.+1, dv h))
    r (e : 'I_r -> 'I_k) :
  (forall (i : 'I_k) c, exists h l, head_column (WQ h) (WK h) (WV h) l (A ^+ i) c) ->
  (forall a, A ^+ e a != 0) ->
  (forall a b, a != b -> ~ same_class (A ^+ e a) (A ^+ e b)) ->
  (r <= H)%N.
Proof.
move=> bank nonzero classes.
have /fin_all_exists[h served] : forall a, exists h, exists l,
    head_column (WQ h) (WK h) (WV h) l (A ^+ e a) ord0 by move=> a; apply: bank.
suff /leq_card : injective h by rewrite !card_ord.
move=> a b hab; apply/eqP/negPn/negP => ab; apply: (classes a b ab).
have [l la] := served a; have := served b; rewrite -hab => -[l' lb].
exact: one_head_one_class F_three la lb _ _.
Qed.

(** Heads in order, every head of its own width: column q = i d + c of the target
    lies in head `at_head q`, and `at_head` does not decrease.  If I, ..., A^(t-1)
    are non-zero and no two neighbours among them are in one class, then t heads
    are needed. *)
Theorem ordered_heads_bound (dv : 'I_H -> nat) (WV : forall h, 'M[F]_(d.+1 + n.+1, dv h))
    (at_head : nat -> 'I_H) t :
  (forall q q', q <= q' -> at_head q <= at_head q')%N ->
  (forall (i : 'I_k) (c : 'I_d.+1), let h := at_head (i * d.+1 + c)%N in
     exists l, head_column (WQ h) (WK h) (WV h) l (A ^+ i) c) ->
  (t <= k)%N -> (forall i, (i < t)%N -> A ^+ i != 0) ->
  (forall i, (i.+1 < t)%N -> ~ same_class (A ^+ i) (A ^+ i.+1)) ->
  (t <= H)%N.
Proof.
move=> ordered bank tk nonzero classes.
have served i : (i < t)%N -> let h := at_head (i * d.+1)%N in
    exists l, head_column (WQ h) (WK h) (WV h) l (A ^+ i) ord0.
  by move=> it; have := bank (Ordinal (leq_trans it tk)) ord0; rewrite /= addn0.
suff late i : (i < t)%N -> (i <= at_head (i * d.+1)%N)%N.
  by case: t late {tk nonzero classes served} => // t /(_ t (ltnSn t)) /leq_ltn_trans ->.
elim: i => // i IH it; have it' := ltnW it; apply: leq_ltn_trans (IH it') _.
rewrite ltn_neqAle ordered ?leq_mul2r ?leqnSn ?orbT // andbT; apply/negP => /eqP/val_inj h_eq.
case: (classes i it); have [l li] := served i it'; have := served i.+1 it.
rewrite /= -h_eq => -[l' lj].
exact: one_head_one_class F_three li lj (nonzero _ it') (nonzero _ it).
Qed.

(** Heads in order, all of one width dv (the reading of the paper): the first
    k d columns of the concatenated heads are [X, A X, ..., A^(k-1) X].  If k >= 2
    and A is not a scalar matrix, k heads are needed. *)
Theorem one_width_bound dv (WV : 'I_H -> 'M[F]_(d.+1 + n.+1, dv)) :
  (k * d.+1 <= H * dv)%N ->
  (forall X, first_columns _ (\mxrow_(h < H) mha id WQ WK WV (with_code X) h) = bank A X k) ->
  (1 < k)%N -> ~~ is_scalar_mx A -> (k <= H)%N.
Proof.
move=> wide heads k2 A_scalar.
have H0 : (0 < H)%N by case: (H) wide k2 => //; rewrite mul0n leqn0 muln_eq0; case: (k).
have [dvd | dvd] := leqP dv d.+1.
  by rewrite -(leq_pmul2r (ltn0Sn d)); apply: leq_trans wide _; rewrite leq_mul2l dvd orbT.
pose h0 := Ordinal H0; pose i0 := Ordinal (ltnW k2); pose i1 := Ordinal k2.
have serves (l : 'I_dv) (i : 'I_k) : l = (i * d.+1)%N :> nat ->
    head_column (WQ h0) (WK h0) (WV h0) l (A ^+ i) ord0.
  move=> li X /=; rewrite -col_mulmx.
  have := first_columns_column (T := fun i : 'I_k => A ^+ i *m X) (h := h0) (l := l)
    (i := i) (c := ord0) (heads X).
  by rewrite /= mul0n add0n addn0 => /(_ li).
have s0 := serves (Ordinal (leq_trans (ltn0Sn d) (ltnW dvd))) i0 erefl.
have s1 := serves (Ordinal dvd) i1 (esym (mul1n _)).
have A1 : A ^+ 1 != 0.
  by apply: contraNneq A_scalar; rewrite expr1 => ->; exact: mx0_is_scalar.
have [t _ AE] : same_class (A ^+ 0) (A ^+ 1).
  exact: one_head_one_class F_three s0 s1 (oner_neq0 _) A1.
by case/is_scalar_mxP: A_scalar; exists t; rewrite -[A]expr1 AE scalemx1.
Qed.
End Counting.

(* ------------------------------------------------------------------------ *)
(** * As many heads suffice *)

(* A position-only head with scores M and values [t_0 X, ..., t_(m-1) X].     *)
Lemma position_head (F : fieldType) n d m (M : 'M[F]_n.+1) (t : 'I_m -> F)
    (X : 'M[F]_(n.+1, d)) : let Y := with_code X in
  attention id (Y *m col_mx 0 M) (Y *m col_mx 0 1%:M)
    (Y *m col_mx (\mxrow_(i < m) (t i)%:M) 0) = \mxrow_(i < m) (t i *: M *m X).
Proof.
rewrite /attention /= !read_code read_features trmx1 mulmx1 !mul_mxrow.
by apply: eq_mxrow => i; rewrite mul_mx_scalar -scalemxAr scalemxAl.
Qed.

(** A scalar matrix needs one head only, whatever k: the hypothesis on A in
    [one_width_bound] cannot be dropped. *)
Corollary scalar_one_head (F : fieldType) n d k (t : F) (X : 'M[F]_(n.+1, d)) :
  let Y := with_code X in
  attention id (Y *m col_mx 0 1%:M) (Y *m col_mx 0 1%:M)
    (Y *m col_mx (\mxrow_(i < k) (t ^+ i)%:M) 0) = bank t%:M X k.
Proof.
rewrite /= position_head; apply: eq_mxrow => i.
by rewrite scalemx1 [(t%:M : 'M[F]_n.+1) ^+ i](_ : _ = (t ^+ i)%:M) // -rmorphX.
Qed.

(** One head for each class suffices: if A^i = t_i M_(cls i) for i < k, then r
    position-only heads hold all columns A^i X e_c, i < k. *)
Theorem classes_suffice (F : fieldType) n d k r (A : 'M[F]_n.+1) (cls : 'I_k -> 'I_r)
    (M : 'I_r -> 'M[F]_n.+1) (t : 'I_k -> F) :
  (forall i : 'I_k, A ^+ i = t i *: M (cls i)) ->
  exists WQ WK : 'I_r -> 'M[F]_(d + n.+1, n.+1),
  exists WV : 'I_r -> 'M[F]_(d + n.+1, \sum_(i < k) d),
  forall (i : 'I_k) c, exists h l, head_column (WQ h) (WK h) (WV h) l (A ^+ i) c.
Proof.
move=> AE; exists (fun h => col_mx 0 (M h)), (fun=> col_mx 0 1%:M).
exists (fun=> col_mx (\mxrow_(i < k) (t i)%:M) 0) => i c.
exists (cls i), (tagnat.Rank i c) => X /=; rewrite position_head.
rewrite -col_mulmx AE; apply/colP => a; rewrite mxE [RHS]mxE mxE.
by rewrite tagnat.Rank1K tagnat.Rank2K cast_ord_id.
Qed.

(* ------------------------------------------------------------------------ *)
(** * The hypotheses matter *)

(* Two tokens of one feature, a head with W_Q W_K^T = [[0, C], [D, E]].       *)
Section OneFeature.
Variables (F : fieldType) (C : 'M[F]_(1, 2)) (D : 'M[F]_(2, 1)) (E : 'M[F]_2).
Variables (V1 : 'M[F]_(1, 2)) (V0 : 'M[F]_2).

Lemma head_column_2x1 l M :
  (forall X : 'M[F]_(2, 1),
     (X *m C + D *m X^T + E) *m (X *m col l V1 + col l V0) = M *m X) ->
  head_column (block_mx 0 C D E) 1%:M (col_mx V1 V0) l M (ord0 : 'I_1).
Proof.
move=> sM; apply/head_column_blocks => X; rewrite trmx1 mulmx1.
rewrite block_mxKul block_mxKur block_mxKdl block_mxKdr col_mxKu col_mxKd /scores.
rewrite mulmx0 mul0mx add0r sM; congr (_ *m _).
by apply/matrixP => i j; rewrite mxE [j]ord1.
Qed.
End OneFeature.

Lemma eq_2x1 (F : fieldType) (M M' : 'M[F]_(2, 1)) :
  M 0 0 = M' 0 0 -> M 1 0 = M' 1 0 -> M = M'.
Proof.
move=> e0 e1; apply/matrixP => i j; rewrite [j]ord1.
by case: i => -[|[|//]] lt_i; [move: e0 | move: e1]; congr (M _ _ = M' _ _); apply/val_inj.
Qed.

Local Ltac entries :=
  rewrite !(mxE, big_ord_recl, big_ord0) /=;
  rewrite (_ : lift ord0 ord0 = 1 :> 'I_2); last (by apply/val_inj);
  rewrite ?(mul0r, mulr0, add0r, addr0, mul1r, mulr1).

(** Not any two matrices will do in [one_head_one_class]: a head can hold M X and
    M' X for M = [[1, 0], [0, 0]] and M' = [[1, 1], [0, 1]], which are not powers
    of one matrix. *)
Theorem powers_needed (F : fieldType) :
  let M : 'M[F]_2 := delta_mx 0 0 in let M' : 'M[F]_2 := 1%:M + delta_mx 0 1 in
  exists WQ WK : 'M[F]_(1 + 2, 1 + 2), exists WV : 'M[F]_(1 + 2, 2),
  [/\ head_column WQ WK WV 0 M (ord0 : 'I_1), head_column WQ WK WV 1 M' (ord0 : 'I_1)
    & ~ same_class M M'].
Proof.
move=> M M'; exists (block_mx 0 (delta_mx 0 1) (delta_mx 0 0) 0), 1%:M, (col_mx 0 1%:M).
split.
- by apply: head_column_2x1 => X; apply: eq_2x1; entries.
- by apply: head_column_2x1 => X; apply: eq_2x1; entries.
- case=> t _ /matrixP/(_ 0 1); rewrite !mxE /= add0r mulr0 => /eqP.
  by rewrite oner_eq0.
Qed.

(** Three elements are needed: over a field of two elements one head holds X and
    A X for A = [[0, 0], [0, 1]], for all four X, though A is not a scalar. *)
Theorem two_elements_two_classes (F : fieldType) : (forall x : F, x = 0 \/ x = 1) ->
  let A : 'M[F]_2 := delta_mx 1 1 in
  exists WQ WK : 'M[F]_(1 + 2, 1 + 2), exists WV : 'M[F]_(1 + 2, 2),
  [/\ head_column WQ WK WV 0 (A ^+ 0) (ord0 : 'I_1),
      head_column WQ WK WV 1 (A ^+ 1) (ord0 : 'I_1) & ~ same_class (A ^+ 0) (A ^+ 1)].
Proof.
move=> two A; have two0 : 1 + 1 = 0 :> F.
  by case: (two (1 + 1)) => // /(canRL (addrK 1))/eqP; rewrite subrr oner_eq0.
exists (block_mx 0 0 (delta_mx 1 0) (delta_mx 0 0 + delta_mx 1 0)), 1%:M.
exists (col_mx (delta_mx 0 0) (delta_mx 1 1)); rewrite expr0 expr1.
split.
- apply: head_column_2x1 => X; apply: eq_2x1; entries => //.
  by case: (two (X ord0 ord0)) => ->; case: (two (X 1 ord0)) => ->;
     rewrite ?two0 ?(mulr0, mul0r, mulr1, addr0, add0r).
- by apply: head_column_2x1 => X; apply: eq_2x1; entries.
- case=> t _ /matrixP AE; have := AE 1 1; have := AE 0 0.
  by rewrite !mxE /= mulr1 => <- /eqP; rewrite oner_eq0.
Qed.

Lemma elements_F2 (x : 'F_2) : x = 0 \/ x = 1.
Proof. by case: x => -[|[|//]] ?; [left | right]; apply/val_inj. Qed.
