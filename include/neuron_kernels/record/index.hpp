// Index and Cond of Recorder: loop indices as symbols, with what is known of their values.
//
// Constants fold, and so does everything that has only one possible value
// (the index of a loop that runs once).
#pragma once

#include <algorithm>
#include <cassert>
#include <concepts>
#include <cstdint>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "neuron_kernels/core/error.hpp"
#include "neuron_kernels/record/program.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// Values lie in lo, lo + step, ... hi.
/// exact: both ends are taken in some iteration (no loop with a symbolic extent, no loop index used twice).
/// Ends stay within +-2^62: beyond, they stick.
struct Bounds {
  std::int64_t lo = 0, hi = 0;
  std::int64_t step = 0;
  bool exact = true;
  std::uint64_t loops = 0;  // bit (l % 64) for each loop l whose index is used

  static constexpr std::int64_t far = std::int64_t{1} << 62;
  static std::int64_t clamp(std::int64_t x) { return std::clamp(x, -far, far); }
  static std::int64_t times(std::int64_t a, std::int64_t b) {
    std::int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? far : -far;
    return clamp(product);
  }
  bool constant() const { return lo == hi; }

  static Bounds of(ExprOp op, const Bounds& a, const Bounds& b) {
    Bounds r;
    r.loops = a.loops | b.loops;
    r.exact = a.exact && b.exact && (a.loops & b.loops) == 0;
    r.step = std::gcd(a.step, b.step);
    switch (op) {
      case ExprOp::add:
        r.lo = clamp(a.lo + b.lo), r.hi = clamp(a.hi + b.hi);
        break;
      case ExprOp::subtract:
        r.lo = clamp(a.lo - b.hi), r.hi = clamp(a.hi - b.lo);
        break;
      case ExprOp::multiply: {
        const auto [lo, hi] =
            std::minmax({times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)});
        r.lo = lo, r.hi = hi;
        r.step = b.constant() ? times(a.step, b.lo < 0 ? -b.lo : b.lo) : 1;
        break;
      }
      case ExprOp::divide:
        r.lo = floor_divide(a.lo, b.lo), r.hi = floor_divide(a.hi, b.lo);
        r.step = a.step % b.lo == 0 ? a.step / b.lo : 1;
        break;
      case ExprOp::modulo:
        if (const std::int64_t q = floor_divide(a.lo, b.lo); q == floor_divide(a.hi, b.lo)) {
          r.lo = a.lo - q * b.lo, r.hi = a.hi - q * b.lo, r.step = a.step;
        } else {
          r.lo = 0, r.hi = b.lo - 1, r.step = 1, r.exact = false;
        }
        break;
      default:
        r.lo = op == ExprOp::min ? std::min(a.lo, b.lo) : std::max(a.lo, b.lo);
        r.hi = op == ExprOp::min ? std::min(a.hi, b.hi) : std::max(a.hi, b.hi);
        r.step = std::gcd(r.step, clamp(a.lo - b.lo));
    }
    return r;
  }
};

/// The expressions of one recording, and which of its loops are open.
struct IndexPool {
  struct Node {
    Expr expr;
    Bounds bounds;
    int newest_loop;        // of those it uses: while that is open, the others are
    ExprId used_as = none;  // its position in the Program once an op has used it
  };
  struct Hash {
    std::size_t operator()(const Expr& e) const {
      const auto key = static_cast<std::uint64_t>(e.value) * 0x9e3779b97f4a7c15u ^
                       static_cast<std::uint64_t>(e.a) * 0xbf58476d1ce4e5b9u ^
                       static_cast<std::uint64_t>(e.b) * 0x94d049bb133111ebu ^
                       static_cast<std::uint64_t>(e.op) << 56;
      return std::hash<std::uint64_t>{}(key ^ key >> 31);
    }
  };
  std::vector<Node> nodes;
  std::vector<char> open;  // per loop
  std::unordered_map<Expr, ExprId, Hash> used;
};

class Cond;

/// Loop index, or what is computed from one; see core/target.hpp.
class Index {
 public:
  Index() = default;
  template <std::integral I>
  requires(!std::same_as<I, bool>) Index(I constant)
      : constant_(static_cast<std::int64_t>(constant)) {}  // implicit: ints mix with Index
  // Compilers print these lines, so their comments are the error messages.
  explicit operator bool() const = delete;  // known only on the chip: no C++ `if` on an Index
  explicit operator int() const = delete;  // known only on the chip: sizes of tiles and arrays are plain ints

  friend Index operator+(Index a, Index b) { return combine(ExprOp::add, a, b); }
  friend Index operator-(Index a, Index b) { return combine(ExprOp::subtract, a, b); }
  friend Index operator*(Index a, Index b) { return combine(ExprOp::multiply, a, b); }
  friend Index operator/(Index a, int n) { return combine(ExprOp::divide, a, positive(n, "/")); }
  friend Index operator%(Index a, int n) { return combine(ExprOp::modulo, a, positive(n, "%")); }
  friend Index min(Index a, Index b) { return combine(ExprOp::min, a, b); }
  friend Index max(Index a, Index b) { return combine(ExprOp::max, a, b); }
  friend Cond operator<(Index a, Index b);
  friend Cond operator<=(Index a, Index b);
  friend Cond operator>(Index a, Index b);
  friend Cond operator>=(Index a, Index b);
  friend Cond operator==(Index a, Index b);
  friend Cond operator!=(Index a, Index b);

  Bounds bounds() const { return pool_ ? nth(pool_->nodes, node_).bounds : Bounds{constant_, constant_}; }
  /// Whether all loops that it comes from are still open.
  bool alive() const { return pool_ == nullptr || nth(pool_->open, nth(pool_->nodes, node_).newest_loop); }

  /// The index of loop `l`, which the caller has just opened.
  static Index of_loop(IndexPool& pool, int l, const Bounds& bounds) {
    if (bounds.constant()) return bounds.lo;
    return append(pool, Expr{ExprOp::loop, l}, bounds, l);
  }

  /// Its position in `exprs`, appended there if it is new.
  ExprId use(IndexPool& pool, std::vector<Expr>& exprs) const {
    if (pool_ == nullptr) return intern(pool, exprs, Expr{ExprOp::constant, constant_});
    const Node node = nth(pool.nodes, node_);
    if (node.used_as != none) return node.used_as;
    Expr e = node.expr;
    if (e.a != none) e.a = Index(pool, e.a).use(pool, exprs);
    if (e.b != none) e.b = Index(pool, e.b).use(pool, exprs);
    return nth(pool.nodes, node_).used_as = intern(pool, exprs, e);
  }

 private:
  friend class Cond;
  using Node = IndexPool::Node;
  Index(IndexPool& pool, int node) : pool_(&pool), node_(node) {}

  static ExprId intern(IndexPool& pool, std::vector<Expr>& exprs, const Expr& e) {
    const auto [entry, is_new] = pool.used.try_emplace(e, static_cast<ExprId>(exprs.size()));
    if (is_new) exprs.push_back(e);
    return entry->second;
  }

  static Index append(IndexPool& pool, const Expr& e, const Bounds& bounds, int newest_loop) {
    pool.nodes.push_back({e, bounds, newest_loop});
    return {pool, static_cast<int>(pool.nodes.size()) - 1};
  }

  /// Its node in `pool`: a constant gets one of its own, valid wherever the expression beside it is.
  int node_in(IndexPool& pool) const {
    return pool_ ? node_ : append(pool, Expr{ExprOp::constant, constant_}, bounds(), none).node_;
  }

  static Index positive(int n, const char* op) {
    if (n < 1) throw TileError(text("Index ", op, " ", n, ": the right side must be a positive int"));
    return n;
  }

  bool is(ExprOp op) const { return pool_ && nth(pool_->nodes, node_).expr.op == op; }
  /// For "x op c": x and c.
  Index left() const { return {*pool_, nth(pool_->nodes, node_).expr.a}; }
  Bounds right() const { return nth(pool_->nodes, nth(pool_->nodes, node_).expr.b).bounds; }

  static Index combine(ExprOp op, Index a, Index b) {
    for (const Index& i : {a, b}) {
      if (!i.alive())
        throw TileError("Index: used after the loop that made it ended; use an Index of an open loop");
    }
    const Bounds x = a.bounds(), y = b.bounds();
    if ((op == ExprOp::divide || op == ExprOp::modulo) && (x.exact ? x.lo : x.hi) < 0) {
      throw TileError(text("Index: a value down to ", x.lo, " divided by ", y.lo,
                           "; targets may round negative values differently: use max(i, 0) first"));
    }
    const Bounds r = Bounds::of(op, x, y);
    if (r.constant()) return r.lo;
    if (op == ExprOp::subtract && y.constant()) return combine(ExprOp::add, a, -y.lo);
    if (x.constant() && (op == ExprOp::add || op == ExprOp::multiply)) return combine(op, b, x.lo);
    if (y.constant()) {
      const std::int64_t c = y.lo;
      if (op == ExprOp::add) {
        if (c == 0) return a;
        if (a.is(ExprOp::add) && a.right().constant())
          return combine(op, a.left(), Bounds::clamp(a.right().lo + c));
      }
      if (op == ExprOp::multiply || op == ExprOp::divide) {
        if (c == 1) return a;
        if (a.is(ExprOp::multiply) && a.right().constant()) {
          const std::int64_t factor = a.right().lo;
          if (op == ExprOp::multiply) return combine(op, a.left(), Bounds::times(factor, c));
          if (factor % c == 0) return combine(ExprOp::multiply, a.left(), factor / c);
        }
      }
      if (op == ExprOp::modulo && x.lo >= 0 && x.hi < c) return a;
    }
    if (op == ExprOp::min || op == ExprOp::max) {
      if (x.hi <= y.lo) return op == ExprOp::min ? a : b;
      if (y.hi <= x.lo) return op == ExprOp::min ? b : a;
    }
    assert(a.pool_ != nullptr || b.pool_ != nullptr);  // of two constants r is one, which was returned above
    IndexPool& pool = a.pool_ != nullptr ? *a.pool_ : *b.pool_;
    const int left = a.node_in(pool), right = b.node_in(pool);
    return append(pool, Expr{op, 0, left, right}, r,
                  std::max(nth(pool.nodes, left).newest_loop, nth(pool.nodes, right).newest_loop));
  }

  IndexPool* pool_ = nullptr;  // nullptr: the constant
  int node_ = none;
  std::int64_t constant_ = 0;
};

/// Result of comparing two Index values, which only ops take.
class Cond {
 public:
  template <std::same_as<bool> B>
  Cond(B value) : op_(value ? Compare::always : Compare::never) {}  // implicit: {.accumulate = true}
  explicit operator bool() const = delete;  // known only on the chip: no C++ `if` on a Cond; give it to an op

  /// Folds where the bounds decide.
  static Cond of(Compare op, Index a, Index b) {
    const Bounds x = a.bounds(), y = b.bounds();
    switch (op) {
      case Compare::less:
        return {op, a, b, x.hi < y.lo, x.lo >= y.hi};
      case Compare::less_equal:
        return {op, a, b, x.hi <= y.lo, x.lo > y.hi};
      case Compare::greater:
        return {op, a, b, x.lo > y.hi, x.hi <= y.lo};
      case Compare::greater_equal:
        return {op, a, b, x.lo >= y.hi, x.hi < y.lo};
      case Compare::equal:
        return {op, a, b, x.constant() && y.constant() && x.lo == y.lo, x.hi < y.lo || y.hi < x.lo};
      default:
        return {op, a, b, x.hi < y.lo || y.hi < x.lo, x.constant() && y.constant() && x.lo == y.lo};
    }
  }

  bool alive() const { return a_.alive() && b_.alive(); }
  Condition use(IndexPool& pool, std::vector<Expr>& exprs) const {
    if (op_ == Compare::never || op_ == Compare::always) return {op_};
    const ExprId a = a_.use(pool, exprs), b = b_.use(pool, exprs);
    return {op_, a, b};
  }

 private:
  Cond(Compare op, Index a, Index b, bool always, bool never)
      : op_(always  ? Compare::always
            : never ? Compare::never
                    : op),
        a_(a),
        b_(b) {}
  Compare op_;
  Index a_, b_;
};

inline Cond operator<(Index a, Index b) { return Cond::of(Compare::less, a, b); }
inline Cond operator<=(Index a, Index b) { return Cond::of(Compare::less_equal, a, b); }
inline Cond operator>(Index a, Index b) { return Cond::of(Compare::greater, a, b); }
inline Cond operator>=(Index a, Index b) { return Cond::of(Compare::greater_equal, a, b); }
inline Cond operator==(Index a, Index b) { return Cond::of(Compare::equal, a, b); }
inline Cond operator!=(Index a, Index b) { return Cond::of(Compare::not_equal, a, b); }

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
