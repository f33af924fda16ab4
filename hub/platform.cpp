#include "hub/platform.hpp"

#include <dlfcn.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>

#include "hub/error.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view digits = "0123456789";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The folder site-packages of an interpreter or a virtual environment; empty if there is none. python3.13t
/// is a free-threaded 3.13.
fs::path site_packages(const fs::path& root) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (const char* folder : {"lib", "lib64"}) {
    for (const auto& entry : fs::directory_iterator(root / folder, ignored)) {
      if (!entry.path().filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        if (is_there(entry.path() / packages)) found.push_back(entry.path() / packages);
      }
    }
  }
  for (const fs::path& path : found) {
    if (is_there(path / "torch" / "version.py")) return path;
  }
  return found.empty() ? fs::path() : found.front();
}

/// The root of the environment that `python` (an interpreter, or such a root) belongs to.
fs::path environment_root(const fs::path& python) {
  std::error_code ignored;
  if (fs::is_directory(python, ignored)) return python;
  return python.parent_path()
      .parent_path();  // ROOT/bin/python3; a link to it is not followed: venvs are made of links
}

fs::path python_root(const PlatformOverrides& overrides) {
  if (overrides.python) {
    if (!is_there(*overrides.python)) {
      throw HubError(ErrorKind::usage,
                     "--python names " + overrides.python->string() + ", which does not exist",
                     "name an interpreter or the folder of a virtual environment");
    }
    return environment_root(*overrides.python);
  }
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return value;
  }
  std::istringstream path(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');) {
    if (folder.empty() || ::access((folder + "/python3").c_str(), X_OK) != 0) continue;
    fs::path root = fs::path(folder).parent_path();
    if (!site_packages(root).empty()) return root;  // shims of version managers have none
  }
  return {};
}

/// The value that torch/version.py gives `name`: between quotes behind "name... = "; empty for None.
std::string python_constant(const std::string& source, const std::string& name) {
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name) || line.size() == name.size()) continue;
    const char next = line[name.size()];
    if (next != ' ' && next != ':' && next != '=') continue;
    const std::size_t open = line.find_first_of("'\"", line.find('='));
    if (open == line.npos) return {};
    return line.substr(open + 1, line.find(line[open], open + 1) - open - 1);
  }
  return {};
}

std::optional<ShortVersion> distribution_version(const fs::path& packages, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(packages, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".dist-info"))
      return ShortVersion::parse(name.substr(prefix.size()));
  }
  return {};
}

/// Of the driver, where PyTorch does not tell: through libcudart, as HF's client does.
std::optional<ShortVersion> cuda_runtime_version() {
  for (const char* name : {"libcudart.so", "libcudart.so.13", "libcudart.so.12"}) {
    void* library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    const auto get = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cudaRuntimeGetVersion"));
    int version = 0;  // 13020 is 13.2
    if (get != nullptr && get(&version) == 0 && version > 0)
      return ShortVersion{version / 1000, version % 1000 / 10};
  }
  return {};
}

/// Compute capability of each CUDA device, through the driver's library.
std::vector<std::string> cuda_device_archs() {
  std::vector<std::string> archs;
  if (!is_there("/dev/nvidiactl")) return archs;
  void* library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return archs;
  const auto init = reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(::dlsym(library, "cuDeviceGetCount"));
  const auto attribute = reinterpret_cast<int (*)(int*, int, int)>(::dlsym(library, "cuDeviceGetAttribute"));
  int devices = 0;
  if (init == nullptr || count == nullptr || attribute == nullptr || init(0) != 0 || count(&devices) != 0)
    return archs;
  constexpr int capability_major = 75, capability_minor = 76;  // CUdevice_attribute in cuda.h
  for (int device = 0; device < devices; ++device) {
    int major = 0, minor = 0;
    if (attribute(&major, capability_major, device) == 0 &&
        attribute(&minor, capability_minor, device) == 0) {
      archs.push_back(ShortVersion{major, minor}.text());
    }
  }
  return archs;
}

/// The order is HF's: the first that is present.
Backend find_backend(const fs::path& packages, const std::string& torch_version) {
  if (!packages.empty() && is_there(packages / "torch_tpu")) return {.name = "tpu"};
  if (is_there("/dev/neuron0") || (!packages.empty() && is_there(packages / "torch_neuronx")))
    return {.name = "neuron"};
  if (!torch_version.empty()) {
    constexpr std::array backends{std::array{"cuda", "cuda"}, std::array{"hip", "rocm"},
                                  std::array{"xpu", "xpu"}};
    for (const auto& [constant, name] : backends) {
      if (const auto version = ShortVersion::parse(python_constant(torch_version, constant))) {
        return {.name = name, .version = version};
      }
    }
    return {};
  }
  if (const auto cuda = cuda_runtime_version()) return {.name = "cuda", .version = cuda};
  return {};
}

void find_python_packages(const PlatformOverrides& overrides, Platform& platform) {
  const fs::path root = python_root(overrides);
  fs::path packages = root.empty() ? fs::path() : site_packages(root);
  if (const char* home = std::getenv("HOME"); home != nullptr && root == "/usr") {  // pip install --user
    const fs::path user = site_packages(fs::path(home) / ".local");
    if (is_there(user / "torch" / "version.py")) packages = user;
  }
  const fs::path version_file = packages / "torch" / "version.py";
  std::string torch_version;
  if (!packages.empty() && is_there(version_file)) torch_version = read_file(version_file);
  platform.torch_source = packages.empty() ? root.string() : packages.string();
  platform.torch = ShortVersion::parse(python_constant(torch_version, "__version__"));
  if (platform.torch) platform.cxx11_abi = true;  // wheels for Linux have it since PyTorch 2.6
  if (platform.torch && *platform.torch < ShortVersion{2, 6}) platform.cxx11_abi.reset();
  if (!packages.empty()) platform.tvm_ffi = distribution_version(packages, "apache_tvm_ffi-");
  const std::string python = packages.parent_path().filename().string();  // "python3.13t"
  if (python.ends_with('t') && python.starts_with("python3.")) {
    platform.old_free_threaded = std::atoi(python.c_str() + 8) < 15;
  }
  platform.backend = find_backend(packages, torch_version);
}

[[noreturn]] void bad_override(const char* option, const std::string& given, const char* allowed) {
  throw HubError(ErrorKind::usage, std::string(option) + " is '" + given + "'; allowed is " + allowed);
}

}  // namespace

std::optional<ShortVersion> ShortVersion::parse(std::string_view text) {
  const std::size_t major_size = std::min(text.find_first_not_of(digits), text.size());
  if (major_size == 0 || major_size > 6) return {};
  ShortVersion version{std::atoi(std::string(text.substr(0, major_size)).c_str()), 0};
  if (major_size < text.size() && text[major_size] == '.') {
    const std::string minor(text.substr(major_size + 1, 6));
    version.minor = std::atoi(minor.c_str());
  }
  return version;
}

std::string Backend::text() const {
  const std::string prefix = name == "cuda" ? "cu" : name;
  if (!version) return name;
  return prefix + std::to_string(version->major) + std::to_string(version->minor);
}

std::optional<Backend> Backend::parse(std::string_view text) {
  for (const char* plain : {"cpu", "metal", "neuron", "tpu", "cuda", "rocm", "xpu", "cann", "npu"}) {
    if (text == plain) return Backend{.name = plain};
  }
  constexpr std::array<std::array<std::string_view, 2>, 5> prefixes{
      {{"cuda", "cuda"}, {"cu", "cuda"}, {"rocm", "rocm"}, {"xpu", "xpu"}, {"cann", "cann"}}};
  for (const auto& [prefix, name] : prefixes) {
    if (!text.starts_with(prefix)) continue;
    std::string_view rest = text.substr(prefix.size());
    if (rest.starts_with(':')) rest.remove_prefix(1);
    if (rest.find('.') != rest.npos) {
      const auto version = ShortVersion::parse(rest);
      if (version) return Backend{.name = std::string(name), .version = version};
      return {};
    }
    if (rest.size() < 2 || rest.size() > 6 || rest.find_first_not_of(digits) != rest.npos) continue;
    const auto version =  // the last digit is the minor number
        ShortVersion::parse(std::string(rest.substr(0, rest.size() - 1)) + "." +
                            std::string(rest.substr(rest.size() - 1)));
    return Backend{.name = std::string(name), .version = version};
  }
  return {};
}

std::string Platform::text() const {
  return arch + "-" + os + ", torch " + (torch ? torch->text() : "none") + ", " + backend.text();
}

Platform find_platform(const PlatformOverrides& overrides) {
  Platform platform;
  utsname system{};
  ::uname(&system);
  platform.arch = overrides.arch.value_or(system.machine);
  if (platform.arch == "arm64") platform.arch = "aarch64";
  platform.os = overrides.os.value_or("linux");
  find_python_packages(overrides, platform);
  if (overrides.torch) {
    platform.torch = ShortVersion::parse(*overrides.torch);
    if (!platform.torch && *overrides.torch != "none") {
      bad_override("--torch", *overrides.torch, "MAJOR.MINOR such as 2.13, or none");
    }
    platform.torch_source = "--torch";
    platform.cxx11_abi = platform.torch ? std::optional(true) : std::nullopt;
  }
  if (overrides.backend) {
    const auto backend = Backend::parse(*overrides.backend);
    if (!backend) {
      bad_override("--backend", *overrides.backend,
                   "cpu, cu130, rocm71, xpu20253, cann82, metal, neuron or tpu");
    }
    platform.backend = *backend;
  }
  if (overrides.device_arch) {
    platform.device_archs = {*overrides.device_arch};
  } else if (platform.backend.name == "cuda" && !overrides.backend) {
    platform.device_archs = cuda_device_archs();
  }
  return platform;
}

}  // namespace neuron_kernels::hub
