#include "hub/variant.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace neuron_kernels::hub {

namespace {

constexpr std::string_view header_folder = "neuron-header";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// "213" is 2.13: the first digit is the major number.
std::optional<ShortVersion> digits_version(std::string_view digits) {
  if (digits.size() < 2 || digits.size() > 5 || digits.find_first_not_of("0123456789") != digits.npos)
    return {};
  return ShortVersion::parse(std::string(digits.substr(0, 1)) + "." + std::string(digits.substr(1)));
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// "{backend}-{arch}-{os}"
bool read_target(std::string_view text, Variant& variant) {
  const auto parts = split(text, '-');
  if (parts.size() != 3 || parts[1].empty() || parts[2].empty()) return false;
  const auto backend = Backend::parse(parts[0]);
  if (!backend) return false;
  variant.backend = *backend;
  variant.arch = parts[1];
  variant.os = parts[2];
  return true;
}

/// "{M}{mm}-{rest}"
bool read_framework(std::string_view& text, Variant& variant) {
  const std::size_t dash = text.find('-');
  if (dash == text.npos) return false;
  const auto version = digits_version(text.substr(0, dash));
  if (!version) return false;
  variant.framework = *version;
  text.remove_prefix(dash + 1);
  return true;
}

std::string version_or_none(const std::optional<ShortVersion>& version) {
  return version ? version->text() : "none";
}

std::string abi_text(bool cxx11) { return cxx11 ? "cxx11" : "cxx98"; }

std::string backend_reason(const Variant& variant, const Backend& system) {
  if (variant.kind == Variant::Kind::noarch) {
    const std::string name = system.name == "cann" ? "npu" : system.name;
    if (variant.backend.name == name || variant.backend.name == "universal") return {};
    return "backend (" + variant.backend.name + ") does not match system backend (" + name +
           ") and is not universal";
  }
  if (variant.backend.name == "cuda" && system.name == "cuda" && variant.backend.version && system.version) {
    const bool fits = variant.backend.version->major == system.version->major &&
                      variant.backend.version->minor <= system.version->minor;
    if (fits) return {};
    return "CUDA version (" + variant.backend.version->text() +
           ") is not compatible with system CUDA version (" + system.version->text() + ")";
  }
  if (variant.backend == system) return {};
  return "backend (" + variant.backend.text() + ") does not match selected backend (" + system.text() + ")";
}

std::string framework_reason(const Variant& variant, const Platform& platform) {
  const std::string version = variant.framework.text();
  switch (variant.kind) {
    case Variant::Kind::torch:
      if (platform.torch != variant.framework) {
        return "Torch version (" + version + ") does not match environment Torch version (" +
               version_or_none(platform.torch) + ")";
      }
      if (variant.cxx11_abi && platform.cxx11_abi && variant.cxx11_abi != platform.cxx11_abi) {
        return "Torch CXX11 ABI (" + abi_text(*variant.cxx11_abi) +
               ") does not match environment Torch CXX11 ABI (" + abi_text(*platform.cxx11_abi) + ")";
      }
      return {};
    case Variant::Kind::torch_stable_abi:
      if (!platform.torch || variant.framework > *platform.torch) {
        return "Torch stable ABI version (" + version + ") is too new for environment Torch version (" +
               version_or_none(platform.torch) + ")";
      }
      return {};
    case Variant::Kind::tvm_ffi:
      if (platform.tvm_ffi != variant.framework) {
        return "tvm-ffi version (" + version + ") does not match environment tvm-ffi version (" +
               version_or_none(platform.tvm_ffi) + ")";
      }
      return {};
    default:
      return {};
  }
}

std::string rejection(const Variant& variant, const Platform& platform) {
  if (variant.kind == Variant::Kind::header_only) return {};
  if (variant.compiled()) {
    if (platform.old_free_threaded && variant.kind != Variant::Kind::c_abi) {
      return "arch kernel not supported on free-threaded Python <3.15";
    }
    if (variant.arch != platform.arch) {
      return "CPU (" + variant.arch + ") does not match system CPU (" + platform.arch + ")";
    }
    if (variant.os != platform.os) {
      return "OS (" + variant.os + ") does not match system OS (" + platform.os + ")";
    }
    if (std::string reason = framework_reason(variant, platform); !reason.empty()) return reason;
  }
  return variant.kind == Variant::Kind::c_abi ? std::string() : backend_reason(variant, platform.backend);
}

/// Smaller is better.
auto rank(const Decision& decision) {
  const Variant& v = decision.variant;
  const bool stable = v.kind == Variant::Kind::torch_stable_abi;
  const ShortVersion backend = v.backend.version.value_or(ShortVersion{});
  const int tagged = v.cxx11_abi ? 1 : 0;
  const int universal = v.backend.name == "universal" ? 1 : 0;
  return std::make_tuple(!decision.accepted(), v.kind, stable ? -v.framework.major : 0,
                         stable ? -v.framework.minor : 0, tagged, -backend.major, -backend.minor, universal);
}

}  // namespace

std::optional<Variant> parse_variant(std::string_view name) {
  using Kind = Variant::Kind;
  Variant variant;
  variant.name = name;
  if (name == header_folder) {
    variant.kind = Kind::header_only;
    return variant;
  }
  std::string_view rest = name;
  if (take(rest, "neuron-c-")) {
    variant.kind = Kind::c_abi;
    const auto parts = split(rest, '-');
    if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) return {};
    variant.arch = parts[0];
    variant.os = parts[1];
    return variant;
  }
  if (take(rest, "torch-stable-abi")) {
    variant.kind = Kind::torch_stable_abi;
    if (read_framework(rest, variant) && read_target(rest, variant)) return variant;
    return {};
  }
  if (take(rest, "torch-")) {
    constexpr std::array known{"cpu", "cuda", "metal", "rocm", "xpu", "neuron", "npu", "tpu", "universal"};
    if (std::find(known.begin(), known.end(), rest) == known.end()) return {};
    variant.kind = Kind::noarch;
    variant.backend.name = rest;
    return variant;
  }
  if (take(rest, "tvm-ffi")) {
    variant.kind = Kind::tvm_ffi;
    if (read_framework(rest, variant) && read_target(rest, variant)) return variant;
    return {};
  }
  if (take(rest, "torch")) {
    variant.kind = Kind::torch;
    if (!read_framework(rest, variant)) return {};
    if (take(rest, "cxx11-"))
      variant.cxx11_abi = true;
    else if (take(rest, "cxx98-"))
      variant.cxx11_abi = false;
    if (read_target(rest, variant)) return variant;
  }
  return {};
}

std::string variant_folder(std::string_view name) {
  return std::string(name == "header-only" ? header_folder : name);
}

std::vector<Decision> decide_variants(std::span<const std::string> names, const Platform& platform) {
  std::vector<Decision> decisions;
  for (const std::string& name : names) {
    if (auto variant = parse_variant(name)) {
      std::string reason = rejection(*variant, platform);
      decisions.push_back({.variant = std::move(*variant), .reason = std::move(reason)});
    }
  }
  std::stable_sort(decisions.begin(), decisions.end(),
                   [](const Decision& a, const Decision& b) { return rank(a) < rank(b); });
  return decisions;
}

std::string trace_text(std::span<const Decision> decisions, std::string_view indent) {
  std::string text;
  for (const Decision& decision : decisions) {
    if (!text.empty()) text += '\n';
    text += indent;
    text += decision.variant.name;
    if (!decision.accepted()) {
      text += ": " + decision.reason;
    } else {
      text += &decision == decisions.data() ? " compatible, preferred" : " compatible";
    }
  }
  return text;
}

}  // namespace neuron_kernels::hub
