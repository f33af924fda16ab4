// Host: the Target that executes each tile op at once, on one worker.
// Here are its loops, tiles and transfers.
//
// core/target.hpp has the meaning of every op; engines.hpp has the compute ops. Loops release what their
// iteration took from the arena; a loaded tile aliases its source unless it is read often.
#pragma once

#include <atomic>
#include <limits>
#include <new>

#include "neuron_kernels/host/engines.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

/// Which iterations of programs() loops a worker takes: the next one that no other worker has taken.
struct Claims {
  std::atomic<std::int64_t> next{0};
};

class Host : public Engines {
 public:
  using Index = host::Index;
  using Cond = bool;
  using Hbm = host::Hbm;
  using Tile = host::Tile;
  using TileArray = host::TileArray;
  using Span = host::Span;

  /// Executes all iterations of programs() loops, or with claims those that this worker claims.
  explicit Host(const Page& page, Arena& arena, Claims* claims = nullptr)
      : Engines(page, arena), claims_(claims) {
    if (claims_ != nullptr) mine_ = claims_->next.fetch_add(1, std::memory_order_relaxed);
  }

  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  /// From now on other threads that the caller lets know of it see what was stored.
  ~Host() {
    if (ahead_ != nullptr) page_.finish_stores();
  }

  const Limits& limits() const { return host_limits; }
  const Page& page() const { return page_; }
  Index index(Index n) const { return n; }

  // ---- structure ----

  class Range {
   public:
    struct End {};
    struct Iterator {
      Host& host;
      Index i, end;
      Arena::Mark mark;
      Index operator*() const { return i; }
      void operator++() {
        host.arena_.release(mark);
        ++i;
      }
      bool operator!=(End) const { return i < end; }
    };
    Iterator begin() const { return {host, first, last, host.arena_.mark()}; }
    End end() const { return {}; }

    Host& host;
    Index first, last;
  };

  class Tiles {
   public:
    struct Iterator {
      Range::Iterator at;
      std::int64_t n, step;
      bool claim;
      Span operator*() const {
        const Index begin = at.i * step;
        return {at.i, begin, static_cast<int>(n - begin < step ? n - begin : step)};
      }
      void operator++() {
        if (claim) at.host.finish_program();
        ++at;
        if (claim) skip();
      }
      bool operator!=(Range::End end) const { return at != end; }
      void skip() {
        while (at.i < at.end && !at.host.is_mine()) ++at.i;
      }
    };
    Iterator begin() const {
      Iterator it{{host, 0, (n + step - 1) / step, host.arena_.mark()}, n, step, claim};
      if (claim) it.skip();
      return it;
    }
    Range::End end() const { return {}; }

    Host& host;
    std::int64_t n, step;
    bool claim;
  };

  Range range(Index n) { return {*this, 0, n}; }
  Range range(Index begin, Index end) { return {*this, begin, end}; }
  Tiles tiles(std::int64_t n, std::int64_t step) { return {*this, n, step, false}; }
  Tiles programs(std::int64_t n, std::int64_t step) { return {*this, n, step, claims_ != nullptr}; }

  // ---- tiles ----

  Tile sbuf(const char* name, int p, int f, DType dtype, const Where& where = Where::current()) {
    Tile t = fresh(name, p, f, dtype, Space::sbuf, where);
    if (f == 2) {  // mean and variance (norm_stats): two columns, each contiguous
      t.p_step = 1;
      t.f_step = p;
    }
    return t;
  }
  Tile psum(const char* name, int p, int f, DType dtype = DType::f32, const Where& where = Where::current()) {
    return fresh(name, p, f, dtype, Space::psum, where);
  }
  TileArray sbuf_array(const char* name, Index n, int p, int f, DType dtype,
                       const Where& where = Where::current()) {
    return array(fresh(name, p, f, dtype, Space::sbuf, where, n), n);
  }
  TileArray psum_array(const char* name, Index n, int p, int f, DType dtype = DType::f32,
                       const Where& where = Where::current()) {
    return array(fresh(name, p, f, dtype, Space::psum, where, n), n);
  }
  TileArray input_array(const char* name, Index n, int p, int f, DType dtype,
                        const Where& where = Where::current()) {
    TileArray a = sbuf_array(name, n, p, f, dtype, where);
    a.slot.info.read_only = true;
    return a;
  }
  Tile staged(const char* name, const Hbm& dst, const Where& where = Where::current()) {
    if (dst.stride(1) == 1 && !dst.read_only()) {
      Tile t = alias(name, dst);
      t.is_streamed = dst.is_streamed();
      t.info.read_only = false;
      return t;
    }
    return sbuf(name, static_cast<int>(dst.dim(0)), static_cast<int>(dst.dim(1)), dst.dtype(), where);
  }

  // ---- memory ----

  Tile load(const char* name, const Hbm& src, LoadOptions options = {},
            const Where& where = Where::current()) {
    if (src.is_streamed()) ahead_ = reinterpret_cast<const float*>(src.rows(src.dim(0), 0).data());
    if (!copies(src, options)) return alias(name, src);
    Tile t = fresh(name, static_cast<int>(src.dim(0)), static_cast<int>(src.dim(1)), src.dtype(), Space::sbuf,
                   where);
    gather(page_, arena_, t.f32_data(), t.p_step, rect(src));
    t.info.read_only = true;
    return t;
  }
  Tile load_transposed(const char* name, const Hbm& src, LoadOptions options = {},
                       const Where& where = Where::current()) {
    return load(name, src.transposed(), options, where);
  }
  void load(TileArray& array, Index i, const Hbm& src, LoadOptions options = {},
            const Where& where = Where::current()) {
    tile_rules::fits("load", array.slot, src.dim(0), src.dim(1), src.dtype(), where);
    Tile& t = array.tiles[i];
    if (!copies(src, options)) {
      t = alias(array.slot.info.name, src);
      return;
    }
    t = element(array, i);
    t.shape(static_cast<int>(src.dim(0)), static_cast<int>(src.dim(1)));
    gather(page_, arena_, t.f32_data(), t.p_step, rect(src));
    t.info.read_only = true;
  }
  void load_transposed(TileArray& array, Index i, const Hbm& src, LoadOptions options = {},
                       const Where& where = Where::current()) {
    load(array, i, src.transposed(), options, where);
  }
  Tile load_broadcast(const char* name, const Hbm& src, int p, const Where& where = Where::current()) {
    tile_rules::fresh(name, p, static_cast<int>(src.dim(1)), where);
    Tile t = src.dtype() == DType::f32 && src.stride(1) == 1
                 ? alias(name, src)
                 : load(name, src, {.reads = p + always_copy}, where);
    t.shape(p, t.f());
    t.p_step = 0;
    return t;
  }
  void store(const Hbm& dst, const Tile& tile, StoreOptions = {}, const Where& where = Where::current()) {
    tile_rules::transfer("store", tile, dst.dim(0), dst.dim(1), where);
    if (dst.read_only())
      tile_error(where, "store",
                 text("the destination of ", tile.info.name, " is an input of the kernel, read-only"));
    if (tile.data == dst.data() && tile.f_step == dst.stride(1)) return;  // staged: already there
    const Arena::Mark mark = arena_.mark();
    if (tile.is_f32_rows()) {
      scatter(page_, arena_, rect(dst), tile.f32_data(), tile.p_step);
    } else {
      float* const rows = take(std::int64_t{tile.p()} * tile.f());
      gather(page_, arena_, rows, tile.f(), rect(tile));
      scatter(page_, arena_, rect(dst), rows, tile.f());
    }
    arena_.release(mark);
  }
  void store_transposed(const Hbm& dst, const Tile& tile, StoreOptions options = {},
                        const Where& where = Where::current()) {
    store(dst.transposed(), tile, options, where);
  }

 private:
  // Copying pays from about this many reads on;
  // an alias costs nothing but the cache's opinion of its strides.
  static constexpr int copy_from_reads = 16;
  static constexpr int always_copy = no_limit / 2;

  bool is_mine() { return ordinal_++ == mine_; }
  void finish_program() { mine_ = claims_->next.fetch_add(1, std::memory_order_relaxed); }

  static std::int64_t steps_of(int p, int f) { return p * padded_row(f, DType::f32); }

  Tile fresh(const char* name, int p, int f, DType dtype, Space space, const Where& where, Index n = 1) {
    tile_rules::fresh(name, p, f, where);
    Tile t({name, p, f, dtype, space, false});
    t.p_step = padded_row(f, DType::f32);
    t.data = reinterpret_cast<char*>(take(n * steps_of(p, f)));
    return t;
  }
  TileArray array(const Tile& first, Index n) {
    TileArray a{first, headers(n)};
    for (Index i = 0; i < n; ++i) a.tiles[i] = element(a, i);
    return a;
  }
  Tile* headers(Index n) {
    static_assert(sizeof(Tile) % sizeof(float) == 0);
    void* const memory = take(n * static_cast<Index>(sizeof(Tile) / sizeof(float)));
    auto* const tiles = static_cast<Tile*>(memory);
    for (Index i = 0; i < n; ++i) new (tiles + i) Tile();
    return tiles;
  }
  static Tile element(const TileArray& a, Index i) {
    Tile t = a.slot;
    t.data += i * steps_of(t.p(), t.f()) * static_cast<std::int64_t>(sizeof(float));
    t.info.read_only = false;
    return t;
  }
  static Tile alias(const char* name, const Hbm& src) {
    Tile t(
        {name, static_cast<int>(src.dim(0)), static_cast<int>(src.dim(1)), src.dtype(), Space::sbuf, true});
    t.data = src.data();
    t.storage = src.dtype();
    t.p_step = src.stride(0);
    t.f_step = src.stride(1);
    return t;
  }
  // Rows that run along the free dimension, or (a transposed source) along the partitions, are fit to be read
  // in place; the second only a few times, by matmul's dot product.
  static bool copies(const Hbm& src, LoadOptions options) {
    const bool rows = src.stride(1) == 1 || src.dim(1) == 1;
    const bool columns = src.stride(0) == 1 || src.dim(0) == 1;
    return options.reads >= copy_from_reads || !(rows || columns);
  }

  Claims* claims_;
  std::int64_t mine_ = std::numeric_limits<std::int64_t>::max(), ordinal_ = 0;
};

static_assert(Target<Host>);

}  // namespace host
using host::Host;
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
