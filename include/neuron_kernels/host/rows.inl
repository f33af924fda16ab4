// Row ops of the page (page.hpp has the contract) for the Vec of the including page.
//
// A row op is a body called with each vector of a row; whole vectors and ragged ends are overloads of the
// same load and store, so a body is written once.
// Bodies are structs, not lambdas, and few: each is compiled in every user's file.
// Included inside a page's namespace and target region, after math.inl: no includes here.

struct Whole {};
struct Part {
  int n;  // lanes, 0 < n < len
};
struct UpTo {
  int n;  // lanes, > 0; from len on a whole vector
};
inline Vec load(const float* src, Whole) { return vec_load(src); }
inline Vec load(const float* src, Part part) { return vec_load_part(src, part.n); }
inline Vec load(const float* src, UpTo up_to) {
  return up_to.n >= Vec::len ? vec_load(src) : vec_load_part(src, up_to.n);
}
inline void store(float* dst, Vec x, Whole) { vec_store(dst, x); }
inline void store(float* dst, Vec x, Part part) { vec_store_part(dst, x, part.n); }
inline void store(float* dst, Vec x, UpTo up_to) {
  if (up_to.n >= Vec::len) return vec_store(dst, x);
  vec_store_part(dst, x, up_to.n);
}
inline Vec keep(Vec x, Whole) { return x; }
inline Vec keep(Vec x, UpTo up_to) { return up_to.n >= Vec::len ? x : keep_first(x, up_to.n); }

/// body(j, width) for each vector of [0, n).
template <class Body>
inline void for_vecs(std::int64_t n, Body body) {
  std::int64_t j = 0;
  for (; j <= n - Vec::len; j += Vec::len) body(j, Whole{});
  if (j < n) body(j, Part{static_cast<int>(n - j)});
}

/// Sum of term(j, width) over the vectors of [0, n), in an order that depends on n alone.
/// Term::chains (1 or 4) sums run side by side, as many as hide the latency of an addition, and are added up
/// every 64 steps: the error grows with 64 + n / (64 chains len), not with n.
template <class Term>
inline typename Term::Sum sum_vecs(int n, Term term) {
  using Sum = typename Term::Sum;
  Sum total = Term::zero();
  int j = 0;
  if constexpr (Term::chains == 1) {
    while (j < n) {
      Sum sum = Term::zero();
      const int end = n - j < 64 * Vec::len ? n : j + 64 * Vec::len;
      for (; j < end; j += Vec::len) sum = sum + term(j, UpTo{n - j});
      total = total + sum;
    }
    return total;
  } else {
    constexpr int step = 4 * Vec::len;
    while (j <= n - step) {
      Sum s0 = Term::zero(), s1 = s0, s2 = s0, s3 = s0;
      const int last = n - j < 64 * step ? n - step : j + 63 * step;
      for (; j <= last; j += step) {
        s0 = s0 + term(j, Whole{});
        s1 = s1 + term(j + Vec::len, Whole{});
        s2 = s2 + term(j + 2 * Vec::len, Whole{});
        s3 = s3 + term(j + 3 * Vec::len, Whole{});
      }
      total = total + ((s0 + s1) + (s2 + s3));
    }
    for (; j < n; j += Vec::len) total = total + term(j, UpTo{n - j});
    return total;
  }
}

struct Add {
  static Vec apply(Vec a, Vec b) { return a + b; }
};
struct Subtract {
  static Vec apply(Vec a, Vec b) { return a - b; }
};
struct Multiply {
  static Vec apply(Vec a, Vec b) { return a * b; }
};
struct Max {
  static Vec apply(Vec a, Vec b) { return max(a, b); }
};
struct Min {
  static Vec apply(Vec a, Vec b) { return min(a, b); }
};

template <class Op>
struct BinaryBody {
  float* dst;
  const float *a, *b;
  template <class Width>
  void operator()(std::int64_t j, Width width) const {
    store(dst + j, Op::apply(load(a + j, width), load(b + j, width)), width);
  }
};
template <class Op>
inline void binary_rows(RowsOut dst, RowsIn a, RowsIn b, int rows, int n) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for_vecs(n, BinaryBody<Op>{dst.data + i * dst.step, a.data + i * a.step, b.data + i * b.step});
  }
}
inline void binary(Alu op, RowsOut dst, RowsIn a, RowsIn b, int rows, int n) {
  switch (op) {
    case Alu::add:
      return binary_rows<Add>(dst, a, b, rows, n);
    case Alu::subtract:
      return binary_rows<Subtract>(dst, a, b, rows, n);
    case Alu::multiply:
      return binary_rows<Multiply>(dst, a, b, rows, n);
    case Alu::max:
      return binary_rows<Max>(dst, a, b, rows, n);
    case Alu::min:
      return binary_rows<Min>(dst, a, b, rows, n);
  }
}

// add, subtract and multiply by a scalar are one loop: x op s = x * factor + term, rounded as the operator
// rounds, because a product with 1 or -1 is exact and adding -0 changes no number.
inline bool is_affine(Alu op) { return op == Alu::add || op == Alu::subtract || op == Alu::multiply; }
struct Affine {
  Vec factor, term;
  Vec apply(Vec x) const { return fma(x, factor, term); }
};
inline Affine affine(Alu op, float s) {
  if (op == Alu::multiply) return {vec_set(s), vec_set(-0.0f)};
  if (op == Alu::add) return {vec_set(1.0f), vec_set(s)};
  return {vec_set(1.0f), vec_set(-s)};
}
inline Affine no_change() { return affine(Alu::multiply, 1.0f); }

struct AffineBody {
  float* dst;
  const float* a;
  Affine first, second;
  template <class Width>
  void operator()(std::int64_t j, Width width) const {
    store(dst + j, second.apply(first.apply(load(a + j, width))), width);
  }
};
template <class Op>
struct ScalarBody {
  float* dst;
  const float* a;
  Vec s;
  template <class Width>
  void operator()(std::int64_t j, Width width) const {
    store(dst + j, Op::apply(load(a + j, width), s), width);
  }
};
/// One row of scalar.
inline void scalar_row(Alu op, float* dst, const float* a, float s, int n) {
  if (is_affine(op)) return for_vecs(n, AffineBody{dst, a, affine(op, s), no_change()});
  if (op == Alu::max) return for_vecs(n, ScalarBody<Max>{dst, a, vec_set(s)});
  for_vecs(n, ScalarBody<Min>{dst, a, vec_set(s)});
}
inline void scalar(Alu op, RowsOut dst, RowsIn a, ColumnIn s, int rows, int n) {
  for (std::int64_t i = 0; i < rows; ++i) {
    scalar_row(op, dst.data + i * dst.step, a.data + i * a.step, s.data[i * s.step], n);
  }
}
inline void scalar_scalar(Alu op0, Alu op1, RowsOut dst, RowsIn a, ColumnIn s0, ColumnIn s1, int rows,
                          int n) {
  for (std::int64_t i = 0; i < rows; ++i) {
    float* row = dst.data + i * dst.step;
    const float first = s0.data[i * s0.step], second = s1.data[i * s1.step];
    if (is_affine(op0) && is_affine(op1)) {
      for_vecs(n, AffineBody{row, a.data + i * a.step, affine(op0, first), affine(op1, second)});
    } else {
      scalar_row(op0, row, a.data + i * a.step, first, n);
      scalar_row(op1, row, row, second, n);
    }
  }
}

/// (a op0 s) * b, or (a op0 s) + b * sign for sums and differences.
template <bool product>
struct ScalarTensorBody {
  float* dst;
  const float* a;
  Affine first;
  const float* b;
  Vec sign;
  template <class Width>
  void operator()(std::int64_t j, Width width) const {
    const Vec x = first.apply(load(a + j, width)), y = load(b + j, width);
    store(dst + j, product ? x * y : fma(y, sign, x), width);
  }
};
struct MultiplyAddBody {
  float* dst;
  const float* a;
  Vec s;
  const float* b;
  template <class Width>
  void operator()(std::int64_t j, Width width) const {
    store(dst + j, fma(load(a + j, width), s, load(b + j, width)), width);
  }
};
/// One row of scalar_tensor.
/// Pairs with max or min are two ops in turn over pieces, by way of a buffer, as b may be dst.
inline void scalar_tensor_row(Alu op0, Alu op1, float* dst, const float* a, float s, const float* b, int n) {
  if (op0 == Alu::multiply && op1 == Alu::add) return for_vecs(n, MultiplyAddBody{dst, a, vec_set(s), b});
  if (is_affine(op0) && op1 == Alu::multiply) {
    return for_vecs(n, ScalarTensorBody<true>{dst, a, affine(op0, s), b, vec_zero()});
  }
  if (is_affine(op0) && is_affine(op1)) {
    const Vec sign = vec_set(op1 == Alu::add ? 1.0f : -1.0f);
    return for_vecs(n, ScalarTensorBody<false>{dst, a, affine(op0, s), b, sign});
  }
  constexpr int piece = 512;
  float between[piece];
  for (int j = 0; j < n; j += piece) {
    const int part = n - j < piece ? n - j : piece;
    scalar_row(op0, between, a + j, s, part);
    binary(op1, {dst + j, 0}, {between, 0}, {b + j, 0}, 1, part);
  }
}
inline void scalar_tensor(Alu op0, Alu op1, RowsOut dst, RowsIn a, ColumnIn s, RowsIn b, int rows, int n) {
  for (std::int64_t i = 0; i < rows; ++i) {
    scalar_tensor_row(op0, op1, dst.data + i * dst.step, a.data + i * a.step, s.data[i * s.step],
                      b.data + i * b.step, n);
  }
}

/// Elements less a centre.
struct DifferenceTerm {
  using Sum = Vec;
  static constexpr int chains = 4;
  static Vec zero() { return vec_zero(); }
  const float* a;
  Vec center;
  template <class Width>
  Vec operator()(int j, Width width) const {
    return keep(load(a + j, width) - center, width);
  }
};
/// Largest or smallest of a row.
/// The last vector overlaps the one before: an element counted twice changes nothing.
template <class Op>
inline Vec extremum(const float* a, int n) {
  Vec m0 = vec_load(a), m1 = m0;
  int j = 0;
  for (; j <= n - 2 * Vec::len; j += 2 * Vec::len) {
    m0 = Op::apply(m0, vec_load(a + j));
    m1 = Op::apply(m1, vec_load(a + j + Vec::len));
  }
  if (j <= n - Vec::len) m0 = Op::apply(m0, vec_load(a + j));
  return Op::apply(Op::apply(m0, m1), vec_load(a + n - Vec::len));
}
inline float reduce_row(Alu op, const float* a, int n) {
  if (op == Alu::add) return reduce_add(sum_vecs(n, DifferenceTerm{a, vec_zero()}));
  if (n >= Vec::len)
    return op == Alu::max ? reduce_max(extremum<Max>(a, n)) : reduce_min(extremum<Min>(a, n));
  float m = a[0];
  for (int j = 1; j < n; ++j) {
    const bool better = op == Alu::max ? a[j] > m : a[j] < m;
    m = better ? a[j] : m;
  }
  return m;
}
inline void reduce(Alu op, ColumnOut dst, RowsIn a, int rows, int n) {
  for (std::int64_t i = 0; i < rows; ++i) dst.data[i * dst.step] = reduce_row(op, a.data + i * a.step, n);
}

/// Differences from a number near the mean, and their squares.
struct Moments {
  Vec first, second;
};
// Not a friend in the struct: g++ compiles those without the region's target.
inline Moments operator+(const Moments& a, const Moments& b) {
  return {a.first + b.first, a.second + b.second};
}
struct MomentsTerm {
  using Sum = Moments;
  static constexpr int chains = 4;
  static Moments zero() { return {vec_zero(), vec_zero()}; }
  DifferenceTerm difference;
  template <class Width>
  Moments operator()(int j, Width width) const {
    const Vec d = difference(j, width);
    return {d, d * d};
  }
};
/// Sums of the differences from `center`, and of their squares, over a row.
inline Moments moments_about(const float* row, float center, int n) {
  return sum_vecs(n, MomentsTerm{{row, vec_set(center)}});
}
/// One pass about the mean of the first few elements; a second about the mean that it found only where the
/// first center was so far off (twice the deviation) that taking its square away would cost digits.
/// Neither a large mean nor an odd first element does
/// (Chan, Golub, LeVeque, "Algorithms for computing the sample variance", 1983).
inline void stats(ColumnOut mean, ColumnOut variance, RowsIn a, int rows, int n) {
  const float count = static_cast<float>(n);
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* row = a.data + i * a.step;
    float center = row[0];
    if (n >= Vec::len) center += reduce_add(vec_load(row) - vec_set(center)) / static_cast<float>(Vec::len);
    Moments moments = moments_about(row, center, n);
    float error = reduce_add(moments.first) / count;
    float spread = reduce_add(moments.second) / count - error * error;
    if (error * error > 4.0f * spread) {
      center += error;
      moments = moments_about(row, center, n);
      error = reduce_add(moments.first) / count;
      spread = reduce_add(moments.second) / count - error * error;
    }
    if (mean.data != nullptr) mean.data[i * mean.step] = center + error;
    if (variance.data != nullptr) variance.data[i * variance.step] = spread < 0.0f ? 0.0f : spread;
  }
}
