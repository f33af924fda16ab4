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
struct PastCaches {};  // a whole vector, to an address that is a multiple of its size
struct UpTo {
  int n;  // lanes, > 0; from len on a whole vector
};
inline Vec load(const float* src, Whole) { return vec_load(src); }
inline Vec load(const float* src, PastCaches) { return vec_load(src); }
inline Vec load(const float* src, Part part) { return vec_load_part(src, part.n); }
inline Vec load(const float* src, UpTo up_to) {
  return up_to.n >= Vec::len ? vec_load(src) : vec_load_part(src, up_to.n);
}
inline void store(float* dst, Vec x, Whole) { vec_store(dst, x); }
inline void store(float* dst, Vec x, PastCaches) { vec_store_past(dst, x); }
inline void store(float* dst, Vec x, Part part) { vec_store_part(dst, x, part.n); }
inline void store(float* dst, Vec x, UpTo up_to) {
  if (up_to.n >= Vec::len) return vec_store(dst, x);
  vec_store_part(dst, x, up_to.n);
}
inline Vec keep(Vec x, Whole) { return x; }
inline Vec keep(Vec x, UpTo up_to) { return up_to.n >= Vec::len ? x : keep_first(x, up_to.n); }

/// One row of RowsOut.
struct RowOut {
  float* data;
  const float* ahead;
};
inline RowOut row_of(const RowsOut& rows, std::int64_t i, int n) {
  return {rows.data + i * rows.step, rows.ahead == nullptr ? nullptr : rows.ahead + i * n};
}

/// body(j, width) for each vector of [begin, end).
template <class Body>
inline void for_vecs(std::int64_t begin, std::int64_t end, Body body) {
  std::int64_t j = begin;
  for (; j <= end - Vec::len; j += Vec::len) body(j, Whole{});
  if (j < end) body(j, Part{static_cast<int>(end - j)});
}
template <class Body>
inline void for_vecs(std::int64_t n, Body body) {
  for_vecs(0, n, body);
}
/// The same for a row of dst; with something to fetch ahead, its whole cache lines go past the caches.
template <class Body>
inline void for_vecs(std::int64_t n, const RowOut& dst, Body body) {
  if (!stores_past_caches || dst.ahead == nullptr) return for_vecs(n, body);
  constexpr std::int64_t line = 64 / sizeof(float);
  const auto misaligned =
      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(dst.data) / sizeof(float)) % line;
  const std::int64_t to_line = misaligned == 0 ? 0 : line - misaligned;
  const std::int64_t begin = to_line < n ? to_line : n, end = n - (n - begin) % line;
  for_vecs(0, begin, body);
  for (std::int64_t j = begin; j < end; j += Vec::len) {
    __builtin_prefetch(dst.ahead + j);
    body(j, PastCaches{});
  }
  for_vecs(end, n, body);
}

/// Sum over the vectors of [0, n) by term.add(sum, j, width), in an order that depends on n alone.
/// Four sums run side by side, as many as hide the latency of an addition, and are added up every 64 steps:
/// the error grows with 64 + n / (256 len), not with n.
/// Inlined: in a call, term and sum would pass through memory, stored in parts and loaded whole, which the
/// store buffer cannot forward (stats of 768 elements: 49 -> 22 ns).
template <class Term>
[[gnu::always_inline]] inline typename Term::Sum sum_vecs(int n, Term term) {
  using Sum = typename Term::Sum;
  constexpr int step = 4 * Vec::len;
  Sum total = Term::zero();
  int j = 0;
  while (j <= n - step) {
    Sum s0 = Term::zero(), s1 = s0, s2 = s0, s3 = s0;
    const int last = n - j < 64 * step ? n - step : j + 63 * step;
    for (; j <= last; j += step) {
      s0 = term.add(s0, j, Whole{});
      s1 = term.add(s1, j + Vec::len, Whole{});
      s2 = term.add(s2, j + 2 * Vec::len, Whole{});
      s3 = term.add(s3, j + 3 * Vec::len, Whole{});
    }
    total = total + ((s0 + s1) + (s2 + s3));
  }
  for (; j < n; j += Vec::len) total = term.add(total, j, UpTo{n - j});
  return total;
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
inline void scalar_row(Alu op, const RowOut& dst, const float* a, float s, int n) {
  if (is_affine(op)) return for_vecs(n, dst, AffineBody{dst.data, a, affine(op, s), no_change()});
  if (op == Alu::max) return for_vecs(n, ScalarBody<Max>{dst.data, a, vec_set(s)});
  for_vecs(n, ScalarBody<Min>{dst.data, a, vec_set(s)});
}
inline void scalar(Alu op, RowsOut dst, RowsIn a, ColumnIn s, int rows, int n) {
  for (std::int64_t i = 0; i < rows; ++i) {
    scalar_row(op, row_of(dst, i, n), a.data + i * a.step, s.data[i * s.step], n);
  }
}
inline void scalar_scalar(Alu op0, Alu op1, RowsOut dst, RowsIn a, ColumnIn s0, ColumnIn s1, int rows,
                          int n) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const RowOut row = row_of(dst, i, n);
    const float first = s0.data[i * s0.step], second = s1.data[i * s1.step];
    if (is_affine(op0) && is_affine(op1)) {
      for_vecs(n, row, AffineBody{row.data, a.data + i * a.step, affine(op0, first), affine(op1, second)});
    } else {
      scalar_row(op0, {row.data, nullptr}, a.data + i * a.step, first, n);
      scalar_row(op1, {row.data, nullptr}, row.data, second, n);
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
inline void scalar_tensor_row(Alu op0, Alu op1, const RowOut& dst, const float* a, float s, const float* b,
                              int n) {
  if (op0 == Alu::multiply && op1 == Alu::add)
    return for_vecs(n, dst, MultiplyAddBody{dst.data, a, vec_set(s), b});
  if (is_affine(op0) && op1 == Alu::multiply) {
    return for_vecs(n, dst, ScalarTensorBody<true>{dst.data, a, affine(op0, s), b, vec_zero()});
  }
  if (is_affine(op0) && is_affine(op1)) {
    const Vec sign = vec_set(op1 == Alu::add ? 1.0f : -1.0f);
    return for_vecs(n, ScalarTensorBody<false>{dst.data, a, affine(op0, s), b, sign});
  }
  constexpr int piece = 512;
  float between[piece];
  for (int j = 0; j < n; j += piece) {
    const int part = n - j < piece ? n - j : piece;
    scalar_row(op0, {between, nullptr}, a + j, s, part);
    binary(op1, {dst.data + j, 0}, {between, 0}, {b + j, 0}, 1, part);
  }
}
inline void scalar_tensor(Alu op0, Alu op1, RowsOut dst, RowsIn a, ColumnIn s, RowsIn b, int rows, int n) {
  for (std::int64_t i = 0; i < rows; ++i) {
    scalar_tensor_row(op0, op1, row_of(dst, i, n), a.data + i * a.step, s.data[i * s.step],
                      b.data + i * b.step, n);
  }
}

/// Elements less a centre.
struct DifferenceTerm {
  using Sum = Vec;
  static Vec zero() { return vec_zero(); }
  const float* a;
  Vec center;
  template <class Width>
  Vec at(int j, Width width) const {
    return keep(load(a + j, width) - center, width);
  }
  template <class Width>
  Vec add(Vec sum, int j, Width width) const {
    return sum + at(j, width);
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
  static Moments zero() { return {vec_zero(), vec_zero()}; }
  DifferenceTerm difference;
  template <class Width>
  Moments add(const Moments& sum, int j, Width width) const {
    const Vec d = difference.at(j, width);
    return {sum.first + d, fma(d, d, sum.second)};
  }
};
struct Spread {
  float error, variance;  // mean less center, and the variance
};
/// Mean and variance of a row by its differences from `center`.
inline Spread spread_about(const float* row, float center, int n) {
  const Moments moments = sum_vecs(n, MomentsTerm{{row, vec_set(center)}});
  const float count = static_cast<float>(n);
  const float error = reduce_add(moments.first) / count;
  return {error, reduce_add(moments.second) / count - error * error};
}
/// Mean of the first few elements of a row.
inline float center_of(const float* row, int n) {
  if (n < Vec::len) return row[0];
  return row[0] + reduce_add(vec_load(row) - vec_set(row[0])) / static_cast<float>(Vec::len);
}
/// One pass about the mean of the first few elements; a second about the mean that it found only where the
/// first center was so far off (twice the deviation) that taking its square away would cost digits.
/// Neither a large mean nor an odd first element does
/// (Chan, Golub, LeVeque, "Algorithms for computing the sample variance", 1983).
inline void stats(ColumnOut mean, ColumnOut variance, RowsIn a, int rows, int n) {
  float center = center_of(a.data, n), next_center = 0.0f;
  for (std::int64_t i = 0; i < rows; ++i, center = next_center) {
    const float* row = a.data + i * a.step;
    if (i + 1 < rows) next_center = center_of(row + a.step, n);  // early: its latency hides behind this row
    Spread spread = spread_about(row, center, n);
    if (spread.error * spread.error > 4.0f * spread.variance) {
      center += spread.error;
      spread = spread_about(row, center, n);
    }
    if (mean.data != nullptr) mean.data[i * mean.step] = center + spread.error;
    if (variance.data != nullptr)
      variance.data[i * variance.step] = spread.variance < 0.0f ? 0.0f : spread.variance;
  }
}
