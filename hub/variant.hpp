// Names of build variants, and which of them suits a machine: the rules of Hugging Face's kernels (C.2 and
// C.3 of the protocol), so both clients take the same one, plus our own variants without PyTorch.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hub/platform.hpp"

namespace neuron_kernels::hub {

/// One folder below build/, by what its name says.
struct Variant {
  // In order of preference.
  enum class Kind { torch_stable_abi, torch, tvm_ffi, noarch, c_abi, header_only };

  std::string name;  // of the folder
  Kind kind = Kind::noarch;
  ShortVersion framework;           // of PyTorch or tvm-ffi; for a stable ABI the oldest that has it
  std::optional<bool> cxx11_abi{};  // where the name has the tag
  Backend backend;                  // noarch: its name only, or "universal"
  std::string arch, os;             // empty if it has no compiled code

  bool compiled() const { return !arch.empty(); }
  bool needs_torch() const { return kind == Kind::torch_stable_abi || kind == Kind::torch; }
};

/// Nothing if `name` follows none of the patterns
///   torch{M}{mm}[-cxx11|-cxx98]-{backend}-{arch}-{os}   torch-stable-abi{M}{mm}-{backend}-{arch}-{os}
///   tvm-ffi{M}{mm}-{backend}-{arch}-{os}                torch-{backend without version}, torch-universal
///   neuron-c-{arch}-{os}                                neuron-header
std::optional<Variant> parse_variant(std::string_view name);

/// The folder that a name on the command line means: "header-only" is neuron-header; others are folders
/// already.
std::string variant_folder(std::string_view name);

struct Decision {
  Variant variant;
  std::string reason;  // why it was rejected; empty if it is suitable
  bool accepted() const { return reason.empty(); }
};

/// A decision for each name that parses, suitable ones first, best first.
std::vector<Decision> decide_variants(std::span<const std::string> names, const Platform& platform);

/// "NAME: REASON" or "NAME compatible", one per line, each behind `indent`; the first suitable one is
/// "preferred".
std::string trace_text(std::span<const Decision> decisions, std::string_view indent);

}  // namespace neuron_kernels::hub
