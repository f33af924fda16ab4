// exp, log, tanh, erf, sigmoid, rsqrt with the activations built on them, for the Vec of the including page.
//
// Bounds in ULP, methods, and how the coefficients came about: docs/math.md.
// Polynomials are minimax fits with coefficients rounded to f32 one at a time.
// Included inside a page's namespace and target region: no includes here.

/// e^x = 2^n e^r, n integral, |r| <= ln(2) / 2.
struct ExpParts {
  Vec n, r;
};

/// For x within [-110, 89] or NaN.
inline ExpParts exp_parts_of(Vec x) {
  const Vec n = round_even(x * vec_set(0x1.715476p+0f));  // x / ln 2
  // ln 2 in two parts, the upper one of 15 bits: n * upper is exact, so this needs no FMA to be right.
  return {n, fnma(n, vec_set(0x1.7f7d1cp-20f), fnma(n, vec_set(0x1.62e4p-1f), x))};
}
/// For any x <= 89, held at -110: there e^x is 0 in f32, even after the factors that callers multiply in, and
/// n stays in the range of scale_pow2. NaN comes through, because max and min give their second operand.
inline ExpParts exp_parts(Vec x) { return exp_parts_of(max(vec_set(-110.0f), x)); }

/// c in e^r = 1 + r + r^2 c.
inline Vec exp_series(Vec r) {
  Vec c = vec_set(0x1.6ba480p-10f);
  c = fma(c, r, vec_set(0x1.122a70p-7f));
  c = fma(c, r, vec_set(0x1.5556f0p-5f));
  c = fma(c, r, vec_set(0x1.5554aep-3f));
  return fma(c, r, vec_set(0x1.fffffep-2f));
}
inline Vec exp_of_r(ExpParts e) { return fma(fma(exp_series(e.r), e.r, vec_set(1.0f)), e.r, vec_set(1.0f)); }

// Where a result is 0 by underflow, its lanes compute something harmless instead:
// reaching 0 by a multiplication costs 20 times as much (the CPU's path for denormals),
// and masked scores are all of this kind.

inline Vec exp(Vec x) {
  const Mask gone = less(x, vec_set(-104.0f));                                        // below ln 2^-150
  const ExpParts e = exp_parts_of(min(vec_set(89.0f), select(gone, vec_zero(), x)));  // e^89 is Inf
  return select(gone, vec_zero(), scale_pow2(exp_of_r(e), e.n));
}

inline Vec log(Vec x) {
  const Mask denormal = less(x, vec_set(0x1p-126f));
  const Vec normal = select(denormal, x * vec_set(0x1p24f), x);
  Vec n = exponent(normal) - select(denormal, vec_set(24.0f), vec_zero());
  // x = 2^n m, m moved from [1, 2) to [sqrt(1/2), sqrt(2)), where log m is smallest.
  Vec m = mantissa(normal);
  const Mask upper = greater(m, vec_set(0x1.6a09e6p+0f));
  m = select(upper, m * vec_set(0.5f), m);
  n = select(upper, n + vec_set(1.0f), n);
  const Vec f = m - vec_set(1.0f);   // exact
  Vec p = vec_set(-0x1.38c398p-4f);  // log(1 + f) = f - f^2 / 2 + f^3 p
  p = fma(p, f, vec_set(0x1.057204p-3f));
  p = fma(p, f, vec_set(-0x1.0d8c54p-3f));
  p = fma(p, f, vec_set(0x1.22d74cp-3f));
  p = fma(p, f, vec_set(-0x1.547162p-3f));
  p = fma(p, f, vec_set(0x1.99a026p-3f));
  p = fma(p, f, vec_set(-0x1.00022ap-2f));
  p = fma(p, f, vec_set(0x1.555554p-2f));
  const Vec f2 = f * f;
  const Vec low = fma(n, vec_set(0x1.7f7d1cp-20f), fma(f2, vec_set(-0.5f), f2 * f * p));
  Vec y = fma(n, vec_set(0x1.62e4p-1f), f + low);
  y = select(greater(x, vec_set(0x1.fffffep127f)), x, y);
  y = select(less_equal(x, vec_zero()), vec_set(-__builtin_inff()), y);
  return select(less_equal(vec_zero(), x), y, vec_set(__builtin_nanf("")));  // below 0, or NaN
}

/// tanh |x| = u / (u + 2), u = e^(2 |x|) - 1.
inline Vec tanh(Vec x) {
  const Vec t = min(vec_set(10.0f), abs(x));  // tanh 10 is 1 in f32
  const ExpParts e = exp_parts_of(t + t);
  const Vec power = pow2n(e.n);  // n >= 0 here, and 0 for tiny t: u keeps its relative accuracy
  const Vec u = fma(power, fma(e.r * e.r, exp_series(e.r), e.r), power - vec_set(1.0f));
  return copysign(u / (u + vec_set(2.0f)), x);
}

/// x sigmoid(z) = x / (1 + e^-z).
/// For z < 0 it is x e^z / (1 + e^z) with the power of two multiplied last, so that results down to the
/// denormals keep their bits. In 1 + e^-|z|, powers below 2^-100 are as good as 2^-100.
inline Vec times_sigmoid(Vec x, Vec z) {
  const ExpParts e = exp_parts(copysign(z, vec_set(-1.0f)));
  const Vec m = exp_of_r(e);
  const Mask negative = less(z, vec_zero());
  const Vec y =
      x * select(negative, m, vec_set(1.0f)) / fma(m, pow2n(max(vec_set(-100.0f), e.n)), vec_set(1.0f));
  return scale_pow2(y, select(negative, e.n, vec_zero()));
}

inline Vec sigmoid(Vec x) { return times_sigmoid(vec_set(1.0f), x); }

/// The same for x of z's sign: -0 where z < -110 (x = -Inf would make the product NaN).
inline Vec gated(Vec x, Vec z) {
  return times_sigmoid(select(less(z, vec_set(-110.0f)), vec_set(-0.0f), x), z);
}

inline Vec silu(Vec x) { return gated(x, x); }

/// x (1 + tanh(z / 2)) / 2 = x sigmoid(z), z = 2 sqrt(2 / pi) (x + 0.044715 x^3).
inline Vec gelu_tanh(Vec x) {
  return gated(x, x * fma(x * x, vec_set(0x1.2444f2p-4f), vec_set(0x1.988454p+0f)));
}

/// factor * Q(t), Q(t) = (1 - erf(t / sqrt 2)) / 2, the upper tail of the normal distribution,
/// 0 <= t <= 14.5: Q(t) = e^(-t^2 / 2) u p(u), u = 1 / (1 + 0.35 t), with t^2 to more than f32's bits.
inline Vec times_upper_tail(Vec factor, Vec t) {
  const Vec upper = upper_bits(t);  // 12 bits: its square is exact
  const Vec half = vec_set(-0.5f);
  ExpParts e = exp_parts(half * (upper * upper));
  e.r = fma(half, (t - upper) * (t + upper), e.r);
  const Vec u = vec_set(1.0f) / fma(t, vec_set(0.35f), vec_set(1.0f));
  Vec p = vec_set(-0x1.ddc498p-6f);
  p = fma(p, u, vec_set(0x1.2700bcp-3f));
  p = fma(p, u, vec_set(-0x1.0601f8p-2f));
  p = fma(p, u, vec_set(0x1.465a2cp-3f));
  p = fma(p, u, vec_set(-0x1.7cac78p-6f));
  p = fma(p, u, vec_set(0x1.b061b2p-4f));
  p = fma(p, u, vec_set(0x1.eac736p-4f));
  p = fma(p, u, vec_set(0x1.1e70f0p-3f));
  p = fma(p, u, vec_set(0x1.1df1c4p-3f));
  return scale_pow2(factor * (u * p * exp_of_r(e)), e.n);
}

/// x + x p(x^2) up to |x| = 1, 1 - 2 Q(sqrt(2) |x|) above.
inline Vec erf(Vec x) {
  const Vec t = min(vec_set(8.0f), abs(x));  // erf 8 is 1 in f32
  const Vec s = t * t;
  Vec p = vec_set(0x1.4771fep-14f);
  p = fma(p, s, vec_set(-0x1.a3515ep-11f));
  p = fma(p, s, vec_set(0x1.53f224p-8f));
  p = fma(p, s, vec_set(-0x1.b7f71ap-6f));
  p = fma(p, s, vec_set(0x1.ce2ce6p-4f));
  p = fma(p, s, vec_set(-0x1.81273ep-2f));
  p = fma(p, s, vec_set(0x1.06eba8p-3f));
  const Vec inner = fma(p, t, t);
  const Vec outer = vec_set(1.0f) - times_upper_tail(vec_set(2.0f), t * vec_set(0x1.6a09e6p+0f));
  return copysign(select(less(t, vec_set(1.0f)), inner, outer), x);
}

/// x Phi(x) = max(x, 0) - |x| Q(|x|): no cancellation on either side.
inline Vec gelu(Vec x) {
  const Vec magnitude = abs(x);
  const Mask gone = greater(magnitude, vec_set(14.5f));  // 14.5 Q(14.5) is 0 in f32
  const Vec t = select(gone, vec_zero(), magnitude);
  return max(vec_set(-0.0f), x) - times_upper_tail(t, t);
}

inline Vec rsqrt(Vec x) { return vec_set(1.0f) / sqrt(x); }
inline Vec square(Vec x) { return x * x; }
inline Vec relu(Vec x) { return max(vec_zero(), x); }  // NaN stays NaN: the second operand wins
