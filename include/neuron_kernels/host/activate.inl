// The row op activate of the page: f(a * scale + bias) and the sum of a row of it, for each Act.
//
// Included inside a page's namespace and target region, after math.inl and rows.inl: no includes here.

using Function = Vec (*)(Vec);
/// A row of f(a * scale + bias); gives the sum of its vectors. Whole vectors and the ragged end share one
/// copy of f, and the sum is one chain: twelve functions on every page are a third of a user's compile time.
template <Function f>
struct ActivateRow {
  float* dst;
  const float* a;
  Vec scale, bias;
  Vec operator()(int n) const {
    Vec total = vec_zero();
    for (int j = 0; j < n;) {
      Vec sum = vec_zero();
      const int end = n - j < 64 * Vec::len ? n : j + 64 * Vec::len;
      for (; j < end; j += Vec::len) {
        const bool whole = n - j >= Vec::len;
        const Vec x = whole ? vec_load(a + j) : vec_load_part(a + j, n - j);
        Vec y = f(fma(x, scale, bias));
        if (whole) {
          vec_store(dst + j, y);
        } else {
          vec_store_part(dst + j, y, n - j);
          y = keep_first(y, n - j);
        }
        sum = sum + y;
      }
      total = total + sum;
    }
    return total;
  }
};
/// The same for squares, of which rmsnorm takes sums only: four chains hide the latency of the addition.
struct SquareTerm {
  using Sum = Vec;
  static Vec zero() { return vec_zero(); }
  float* dst;
  const float* a;
  Vec scale, bias;
  template <class Width>
  Vec add(Vec sum, int j, Width width) const {
    const Vec y = square(fma(load(a + j, width), scale, bias));
    store(dst + j, y, width);
    return sum + keep(y, width);
  }
};
struct SquareRow {
  SquareTerm term;
  Vec operator()(int n) const { return sum_vecs(n, term); }
};
struct Activation {
  RowsOut dst;
  RowsIn a;
  ColumnIn scale, bias;
  ColumnOut row_sum;
  int rows, n;
  template <class Row>
  void run() const {
    for (std::int64_t i = 0; i < rows; ++i) {
      const Row row{dst.data + i * dst.step, a.data + i * a.step, vec_set(scale.data[i * scale.step]),
                    vec_set(bias.data[i * bias.step])};
      const Vec sum = row(n);
      if (row_sum.data != nullptr) row_sum.data[i * row_sum.step] = reduce_add(sum);
    }
  }
};
inline Vec identity(Vec x) { return x; }
inline void activate(Act f, RowsOut dst, RowsIn a, ColumnIn scale, ColumnIn bias, ColumnOut row_sum, int rows,
                     int n) {
  const Activation activation{dst, a, scale, bias, row_sum, rows, n};
  switch (f) {
    case Act::identity:
      return activation.run<ActivateRow<identity>>();
    case Act::exp:
      return activation.run<ActivateRow<exp>>();
    case Act::log:
      return activation.run<ActivateRow<log>>();
    case Act::tanh:
      return activation.run<ActivateRow<tanh>>();
    case Act::erf:
      return activation.run<ActivateRow<erf>>();
    case Act::sigmoid:
      return activation.run<ActivateRow<sigmoid>>();
    case Act::rsqrt:
      return activation.run<ActivateRow<rsqrt>>();
    case Act::square:
      return activation.run<SquareRow>();
    case Act::relu:
      return activation.run<ActivateRow<relu>>();
    case Act::silu:
      return activation.run<ActivateRow<silu>>();
    case Act::gelu:
      return activation.run<ActivateRow<gelu>>();
    case Act::gelu_tanh:
      return activation.run<ActivateRow<gelu_tanh>>();
  }
}
