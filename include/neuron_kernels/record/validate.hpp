// validate(program): whether a Program from outside is one: everything that it names is there, nests, and is in range.
//
// After it, print, replay and the analyses may follow every position without a check of their own, recursion is shallow
// and no index expression overflows. It also holds to the rules that Recorder checks of each op (core/tile_rules.hpp);
// a chip's limits are left to the checker.
#pragma once

#include <algorithm>
#include <climits>
#include <string>
#include <vector>

#include "neuron_kernels/record/index.hpp"
#include "neuron_kernels/record/program_size.hpp"
#include "neuron_kernels/record/validate_op.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class Validator {
 public:
  explicit Validator(const Program& program)
      : program_(program),
        nodes_(program.exprs.size()),
        index_(program.loops.size()),
        loop_(program.loops.size()),
        tile_(program.tiles.size()) {}

  void run() {
    sizes();
    if (std::find(std::begin(chips), std::end(chips), program_.chip) == std::end(chips))
      refuse("chip",
             text("\"", program_.chip.substr(0, 40), "\"; allowed are trn1, inf2, trn2, trn3 and host"));
    for (std::size_t i = 0; i < program_.files.size(); ++i) {
      if (program_.files[i].size() > ProgramSize::file_name || !printable(program_.files[i]))
        refuse(at("files", i),
               text("is no name; allowed are up to ", ProgramSize::file_name, " printable characters"));
    }
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) tensor(i);
    for (std::size_t i = 0; i < program_.tiles.size(); ++i) tile(i);
    for (std::size_t i = 0; i < program_.exprs.size(); ++i) expr(i);
    for (std::size_t i = 0; i < program_.ops.size(); ++i) op(i);
    if (!open_.empty())
      refuse("ops", text("end within loops[", open_.back(), "]; each loop op needs its end op"));
    complete();
  }

 private:
  static constexpr const char* chips[] = {"trn1", "inf2", "trn2", "trn3", "host"};
  enum class Stage : char { before, open, ended };

  static std::string at(const char* list, std::integral auto i) { return text(list, "[", i, "]"); }
  [[noreturn]] static void refuse(const std::string& at, const std::string& what) {
    throw ProgramError(at, what);
  }
  static bool printable(const std::string& s) {
    return std::all_of(s.begin(), s.end(),
                       [](char c) { return static_cast<unsigned char>(c) >= 32 && c != 127; });
  }
  static void named(const std::string& field, const std::string& name) {
    if (name.empty() || name.size() > ProgramSize::name || !printable(name) ||
        name.find_first_of("\"'\\#") != name.npos) {
      refuse(field, text("is no name; allowed are 1 to ", ProgramSize::name,
                         " printable characters without quotes, backslash and #"));
    }
  }
  void position(const std::string& field, std::int64_t i, std::size_t size, const char* list) const {
    if (i < 0 || i >= static_cast<std::int64_t>(size))
      refuse(field, text("is ", i, "; allowed are positions in ", list, ", of which there are ", size));
  }
  static void within(const std::string& field, std::int64_t value, std::int64_t lo, std::int64_t hi) {
    if (value < lo || value > hi) refuse(field, text("is ", value, "; allowed are ", lo, " to ", hi));
  }
  void line(const std::string& field, const SourceLine& where) const {
    if (where.file != none) position(field + ".at[0]", where.file, program_.files.size(), "files");
    within(field + ".at[1]", where.line, 0, INT_MAX);
  }

  void sizes() const {
    const auto most = [](const char* list, std::size_t given, std::size_t allowed) {
      if (given > allowed) refuse(list, text("has ", given, " elements; allowed are up to ", allowed));
    };
    most("files", program_.files.size(), ProgramSize::files);
    most("tensors", program_.tensors.size(), ProgramSize::tensors);
    most("tiles", program_.tiles.size(), ProgramSize::tiles);
    most("loops", program_.loops.size(), ProgramSize::loops);
    most("exprs", program_.exprs.size(), ProgramSize::exprs);
    most("ops", program_.ops.size(), ProgramSize::ops);
  }

  void tensor(std::size_t i) const {
    const Tensor& t = program_.tensors[i];
    named(at("tensors", i) + ".name", t.name);
    for (std::size_t j = 0; j < i; ++j) {
      if (program_.tensors[j].name == t.name)
        refuse(at("tensors", i) + ".name",
               text("is ", t.name, ", as that of tensors[", j, "]; each needs its own"));
    }
    within(at("tensors", i) + ".rank", t.rank, 1, max_rank);
    std::int64_t elements = 1;
    for (int d = 0; d < t.rank; ++d) {
      const std::int64_t n = nth(t.shape, d);
      within(text(at("tensors", i), ".shape[", d, "]"), n, 0, ProgramSize::value);
      if (n > 0 && elements > ProgramSize::elements / n)
        refuse(at("tensors", i) + ".shape", text("has more than ", ProgramSize::elements, " elements"));
      elements *= std::max<std::int64_t>(n, 1);
    }
  }

  void tile(std::size_t i) {
    const TileDecl& t = program_.tiles[i];
    const std::string field = at("tiles", i);
    named(field + ".name", t.name);
    within(field + ".shape[0]", t.p, 1, ProgramSize::tile_side);
    within(field + ".shape[1]", t.f, 1, ProgramSize::tile_side);
    within(field + ".count", t.count, t.is_array ? 0 : 1, t.is_array ? ProgramSize::tiles_in_arrays : 1);
    within(field + ".placed.buffers", t.placed.buffers, 0, static_cast<int>(ProgramSize::tiles_in_arrays));
    within(field + ".placed.offset", t.placed.offset, 0, ProgramSize::tile_side);
    within(field + ".placed.stride", t.placed.stride, 0, ProgramSize::tile_side);
    line(field, t.where);
    in_arrays_ += std::max<std::int64_t>(t.is_array ? t.count : 0, t.placed.buffers);
    if (in_arrays_ > ProgramSize::tiles_in_arrays) {
      refuse(field, text("is one too many: all arrays and buffers have more than ",
                         ProgramSize::tiles_in_arrays, " tiles"));
    }
  }

  /// Children first, so that what an expression costs is known before it is ever followed.
  void expr(std::size_t i) {
    const Expr& e = program_.exprs[i];
    const std::string field = at("exprs", i);
    Node& node = nodes_[i];
    if (e.op == ExprOp::constant)
      return within(field + ".value", e.value, -ProgramSize::value, ProgramSize::value);
    if (e.op == ExprOp::loop) return position(field + ".loop", e.value, program_.loops.size(), "loops");
    for (const auto& [child, name] : {std::pair{e.a, ".a"}, {e.b, ".b"}}) {
      if (child < 0 || child >= static_cast<ExprId>(i))
        refuse(field + name, text("is ", child, "; allowed are positions in exprs before ", i));
      node.size += nth(nodes_, child).size;
      node.depth = std::max(node.depth, nth(nodes_, child).depth + 1);
    }
    if (node.size > ProgramSize::expr_nodes || node.depth > ProgramSize::expr_depth) {
      refuse(field, text("has ", node.size, " parts, ", node.depth, " deep; allowed are ",
                         ProgramSize::expr_nodes, " and ", ProgramSize::expr_depth));
    }
    if (e.op == ExprOp::divide || e.op == ExprOp::modulo) {
      const Expr& b = nth(program_.exprs, e.b);
      if (b.op != ExprOp::constant || b.value < 1 || b.value > INT_MAX)
        refuse(field + ".b", "is not a positive constant, by which alone an index can be divided");
    }
  }

  /// Values of an expression, whose loops must be open.
  Bounds bounds(const std::string& field, ExprId id) const {
    const Expr& e = nth(program_.exprs, id);
    if (e.op == ExprOp::constant) return {e.value, e.value};
    if (e.op == ExprOp::loop) {
      if (nth(loop_, e.value) != Stage::open)
        refuse(field, text("uses the index of loops[", e.value, "] outside its body"));
      return nth(index_, e.value);
    }
    const Bounds a = bounds(field, e.a), b = bounds(field, e.b);
    if ((e.op == ExprOp::divide || e.op == ExprOp::modulo) && (a.exact ? a.lo : a.hi) < 0)
      refuse(field, text("divides a value down to ", a.lo, "; allowed are 0 and more: use max(i, 0) first"));
    return checked(field, Bounds::of(e.op, a, b));
  }
  static Bounds checked(const std::string& field, const Bounds& b) {
    if (b.lo < -ProgramSize::value || b.hi > ProgramSize::value)
      refuse(field, text("has values beyond 2^40, which no index may have"));
    return b;
  }
  Bounds index(const std::string& field, ExprId id) const {
    position(field, id, program_.exprs.size(), "exprs");
    return bounds(field, id);
  }
  /// [begin, begin + n) within `size`, wherever the bounds of begin are certain.
  void range(const std::string& field, ExprId begin, std::int64_t n, std::int64_t size) const {
    const Bounds b = index(field, begin);
    const bool outside = b.exact ? b.lo < 0 || b.hi + n > size : b.hi < 0 || b.lo + n > size;
    if (n < 1 || outside) {
      const std::string from = b.constant() ? text(b.lo) : text(b.lo, " to ", b.hi);
      refuse(field, text("takes ", n, " from ", from, "; allowed are 1 or more within [0, ", size, ")"));
    }
  }

  void op(std::size_t i) {
    const Op& o = program_.ops[i];
    const std::string field = at("ops", i);
    if (o.code > last_op_code) refuse(field + ".op", "is unknown");
    line(field, o.where);
    if (o.code == OpCode::loop) return begin(i);
    if (o.code == OpCode::end) return end(i);
    const auto fields = fields_of(o.code);
    if (fields & field_hbm) hbm(field + ".hbm", o.hbm);
    if (fields & field_dst) slice(field + ".dst", o.dst, fields & field_hbm ? Part::element : Part::any);
    if (fields & field_a) slice(field + ".a", o.a);
    if (fields & field_b) slice(field + ".b", o.b);
    if (fields & field_k0 && o.k0.tile.given()) slice(field + ".k0", o.k0.tile);
    if (fields & field_k1 && o.k1.tile.given()) slice(field + ".k1", o.k1.tile);
    if (fields & field_column && (o.column.given() || o.code != OpCode::activate))
      slice(field + ".column", o.column);
    if (fields & field_accumulate && o.accumulate.op != Compare::never &&
        o.accumulate.op != Compare::always) {
      index(field + ".accumulate.a", o.accumulate.a);
      index(field + ".accumulate.b", o.accumulate.b);
    }
    if (fields & field_query_key) {
      index(field + ".query", o.query);
      index(field + ".key", o.key);
    }
    within(field + ".blocks", o.blocks, 1, ProgramSize::tile_side);
    within(field + ".reads", o.reads, 1, INT_MAX);
    if (fields & field_makes) make(i);
    try {
      check_op(program_, o);
    } catch (const TileError& error) {
      refuse(field, text("breaks a tile rule: ", error.what()));
    }
  }

  void begin(std::size_t i) {
    const Op& o = program_.ops[i];
    const std::string op_field = at("ops", i) + ".loop";
    position(op_field, o.loop, program_.loops.size(), "loops");
    const std::string field = at("loops", o.loop);
    const Loop& l = nth(program_.loops, o.loop);
    if (nth(loop_, o.loop) != Stage::before)
      refuse(op_field, text("is ", o.loop, ", a loop that an op before has"));
    if (static_cast<int>(open_.size()) == ProgramSize::depth)
      refuse(op_field, text("is nested too deeply; allowed are ", ProgramSize::depth, " loops"));
    line(field, l.where);
    const Bounds from = index(field + ".begin", l.begin), to = index(field + ".end", l.end);
    if (l.kind != LoopKind::range) span(i, from, to);
    nth(index_, o.loop) = {from.lo, std::max(from.lo, to.hi - 1), 1, from.constant() && to.constant(),
                           std::uint64_t{1} << (o.loop % 64)};
    if (l.first != static_cast<int>(i) + 1)
      refuse(field + ".first", text("is ", l.first, "; its loop op is ops[", i, "]"));
    nth(loop_, o.loop) = Stage::open;
    open_.push_back(o.loop);
    tiles_before_.push_back(made_.size());
  }

  /// A loop over the spans of [0, n), or over their rest.
  void span(std::size_t i, const Bounds& from, const Bounds& to) const {
    const int id = program_.ops[i].loop;
    const std::string field = at("loops", id);
    const Loop& l = nth(program_.loops, id);
    within(field + ".n", l.n, 1, ProgramSize::value);
    within(field + ".step", l.step, 1, INT_MAX);
    const std::int64_t full = l.n / l.step, rest = l.n % l.step;
    const std::int64_t first = l.tail ? full : 0, past = l.tail ? full + 1 : full;
    if (!from.constant() || from.lo != first || !to.constant() || to.lo != past ||
        (l.tail ? rest == 0 : full == 0)) {
      refuse(field, text("covers ", l.n, " in steps of ", l.step, l.tail ? ", the rest" : "",
                         "; begin and end must be ", first, " and ", past, ", and not be empty"));
    }
    for (const int o : open_) {
      if (l.kind == LoopKind::programs && nth(program_.loops, o).kind == LoopKind::programs)
        refuse(field, "is a programs loop inside another; allowed around it and in it are range and tiles");
    }
    const auto same = [&](const Loop& other, bool tail) {
      return other.kind == l.kind && other.n == l.n && other.step == l.step && other.tail == tail;
    };
    if (l.tail && full > 0) {
      const Op* before = i > 0 ? &program_.ops[i - 1] : nullptr;
      if (before == nullptr || before->code != OpCode::end || !same(nth(program_.loops, before->loop), false))
        refuse(field, "is the rest of spans, but does not follow the loop over them");
    }
    if (!l.tail && rest != 0) {
      const std::size_t next = static_cast<std::size_t>(std::max(l.last, 0)) + 1;
      const Op* after = next < program_.ops.size() ? &program_.ops[next] : nullptr;
      const bool is_loop = after != nullptr && after->code == OpCode::loop && after->loop >= 0 &&
                           after->loop < static_cast<int>(program_.loops.size());
      if (!is_loop || !same(nth(program_.loops, after->loop), true))
        refuse(field, text("leaves a rest of ", rest, "; the loop over it must follow"));
    }
  }

  void end(std::size_t i) {
    const Op& o = program_.ops[i];
    if (open_.empty() || open_.back() != o.loop) {
      const std::string inner =
          open_.empty() ? "no loop is open" : text("the innermost open loop is ", open_.back());
      refuse(at("ops", i) + ".loop", text("is ", o.loop, ", but ", inner));
    }
    const Loop& l = nth(program_.loops, o.loop);
    if (l.last != static_cast<int>(i))
      refuse(at("loops", o.loop) + ".last", text("is ", l.last, "; its end op is ops[", i, "]"));
    nth(loop_, o.loop) = Stage::ended;
    open_.pop_back();
    for (std::size_t t = tiles_before_.back(); t < made_.size(); ++t) nth(tile_, made_[t]) = Stage::ended;
    made_.resize(tiles_before_.back());
    tiles_before_.pop_back();
  }

  void make(std::size_t i) {
    const Op& o = program_.ops[i];
    const std::string field = at("ops", i) + ".dst";
    position(field, o.dst.tile, program_.tiles.size(), "tiles");
    const TileDecl& d = nth(program_.tiles, o.dst.tile);
    if (nth(tile_, o.dst.tile) != Stage::before)
      refuse(field, text("is ", o.dst.tile, ", a tile that an op before makes; each is made once"));
    const Made made = made_by(o.code);
    if (d.space != made.space || d.read_only != made.read_only || d.is_array != made.is_array) {
      refuse(field, text("is ", o.dst.tile, ", but ", name_of(o.code), " makes ",
                         made.read_only ? "a read-only " : "a ", made.is_array ? "array" : "tile", " in ",
                         made.space == Space::psum ? "PSUM" : "SBUF"));
    }
    if (o.dst.p != d.p || o.dst.f != d.f || o.dst.element != none || o.dst.partition != none ||
        o.dst.free != none || o.dst.step != 1) {
      refuse(field, "is a part; an op that makes a tile names all of it");
    }
    nth(tile_, o.dst.tile) = Stage::open;
    made_.push_back(o.dst.tile);
  }

  enum class Part { any, element };  // element: of an array, from its first partition and free element

  void slice(const std::string& field, const TileSlice& s, Part part = Part::any) const {
    position(field + ".tile", s.tile, program_.tiles.size(), "tiles");
    const TileDecl& d = nth(program_.tiles, s.tile);
    if (nth(tile_, s.tile) != Stage::open) {
      refuse(field + ".tile",
             text("is ", s.tile, " (", d.name, "), which ",
                  nth(tile_, s.tile) == Stage::before
                      ? "no op has made yet"
                      : "belongs to a loop iteration that has ended; make it outside the loop"));
    }
    if ((s.element != none) != d.is_array)
      refuse(field + ".element",
             d.is_array ? "is missing for an array" : "is given for a tile that is no array");
    if (d.is_array) range(field + ".element", s.element, 1, d.count);
    within(field + ".step", s.step, 1, part == Part::element ? 1 : ProgramSize::tile_side);
    if (part == Part::element) {
      within(field + ".shape[0]", s.p, 1, d.p);
      within(field + ".shape[1]", s.f, 1, d.f);
      if (s.partition != none || s.free != none)
        refuse(field, "is a part; a load fills an element from its start");
      return;
    }
    range(field + ".partition", s.partition, s.p, d.p);
    const std::int64_t span = (std::int64_t{s.f} - 1) * s.step + 1;
    range(field + ".free", s.free, s.f < 1 ? 0 : span, d.f);
  }

  void hbm(const std::string& field, const HbmSlice& h) const {
    position(field + ".tensor", h.tensor, program_.tensors.size(), "tensors");
    const Tensor& t = nth(program_.tensors, h.tensor);
    if (t.rank < 2)
      refuse(field + ".tensor", text("is ", t.name, " of rank ", t.rank, "; a transfer takes a matrix"));
    for (int d = 0; d < t.rank; ++d) {
      const int matrix = d - (t.rank - 2);
      const std::int64_t n = matrix < 0 ? 1 : nth(h.size, matrix);
      within(text(field, ".size[", std::max(matrix, 0), "]"), n, 1, ProgramSize::tile_side);
      range(text(field, ".begin[", d, "]"), nth(h.begin, d), n, nth(t.shape, d));
    }
  }

  /// Nothing is left over, and what no op uses cannot overflow either.
  void complete() const {
    for (std::size_t l = 0; l < loop_.size(); ++l) {
      if (loop_[l] != Stage::ended) refuse(at("loops", l), "is opened by no op; leave it out");
    }
    for (std::size_t t = 0; t < tile_.size(); ++t) {
      if (tile_[t] == Stage::before) refuse(at("tiles", t), "is made by no op; leave it out");
    }
    std::vector<Bounds> all(program_.exprs.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Expr& e = program_.exprs[i];
      Bounds& b = all[i];
      if (e.op == ExprOp::constant) {
        b = {e.value, e.value};
      } else if (e.op == ExprOp::loop) {
        b = nth(index_, e.value);
        b.lo = std::min<std::int64_t>(b.lo, 0), b.hi = std::max<std::int64_t>(b.hi, 0);
      } else {
        b = checked(at("exprs", i), Bounds::of(e.op, nth(all, e.a), nth(all, e.b)));
      }
    }
  }

  struct Node {
    int size = 1, depth = 1;
  };
  const Program& program_;
  std::vector<Node> nodes_;         // per expression
  std::vector<Bounds> index_;       // per loop, once it was opened
  std::vector<Stage> loop_, tile_;  // per loop, per tile
  std::vector<int> open_, made_;    // loops, tiles
  std::vector<std::size_t> tiles_before_;
  std::int64_t in_arrays_ = 0;
};

}  // namespace record

/// errors: ProgramError with the field, unless everything of `program` is as said at the head of this file
/// cost: linear in what the Program holds, about a microsecond per op
inline void validate(const Program& program) { record::Validator(program).run(); }

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
