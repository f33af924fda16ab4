// Names for the Python source of a Program: arguments keep theirs, tiles get one each, loops are named by depth.
#pragma once

#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "neuron_kernels/record/program.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace nki {

/// What the source uses for itself: Python's words, its modules, helpers and what stands around the kernel.
inline bool is_reserved(std::string_view word) {
  constexpr std::string_view words =
      " False None True and as assert async await break class continue def del elif else except finally for "
      "from global if import in is lambda nonlocal not or pass raise return try while with yield abs max min "
      "print range zip _ nki nisa nl np bfloat16 reference simulated rng want got w g worst tile_list "
      "placed_list part_of_bank part_list column transpose load_transposed store_transposed in_sbuf "
      "select_to_psum row_statistics ";
  return words.find(" " + std::string(word) + " ") != words.npos;
}

/// `name` as a Python identifier: letters, digits and _, not starting with a digit, no word of the language.
inline std::string identifier(std::string_view name) {
  std::string s;
  for (const char c : name) s += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (s.empty() || std::isdigit(static_cast<unsigned char>(s[0])) != 0) s = "t" + s;
  return s;
}

class Names {
 public:
  Names(const Program& program, std::string_view kernel_name) : kernel(identifier(kernel_name)) {
    if (is_reserved(kernel)) kernel += "_kernel";
    taken_.insert(kernel);
    for (const record::Tensor& t : program.tensors) tensors.push_back(unique(identifier(t.name)));
    for (const record::TileDecl& t : program.tiles) tiles.push_back(unique(identifier(t.name)));
    loops.resize(program.loops.size());
    std::vector<std::string> by_depth;
    std::size_t depth = 0;
    for (const record::Op& op : program.ops) {
      if (op.code == record::OpCode::end) --depth;
      if (op.code != record::OpCode::loop) continue;
      if (depth == by_depth.size()) by_depth.push_back(unique("i" + text(depth)));
      record::nth(loops, op.loop) = by_depth[depth++];
    }
  }

  std::string kernel;
  std::vector<std::string> tensors, tiles, loops;

 private:
  /// A number is added where several share a name, and _ to a reserved word.
  std::string unique(const std::string& wanted) {
    const std::string base = is_reserved(wanted) ? wanted + "_" : wanted;
    std::string name = base;
    while (!taken_.insert(name).second) name = base + "_" + text(++next_[base]);
    return name;
  }

  std::set<std::string> taken_;
  std::map<std::string, int> next_;
};

}  // namespace nki
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
