#include "hub/build.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>

#include "hub/cmake_config.hpp"
#include "hub/compile.hpp"
#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/metadata.hpp"
#include "hub/process.hpp"
#include "hub/stage.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

class Builder {
 public:
  Builder(fs::path folder, const Manifest& manifest, const BuildOptions& options)
      : folder_(std::move(folder)), manifest_(manifest), options_(options), facts_(facts_of(folder_)) {}

  BuiltVariant header() {
    const fs::path dst = begin("neuron-header");
    stage_folder(folder_, manifest_.header->include, dst / "include");
    require_headers(dst / "include");
    write_file(dst / cmake_config_name(manifest_), header_config(manifest_));
    write_file(dst / cmake_version_name(manifest_), config_version(manifest_));
    return end(dst, "", source_digest({manifest_.header->include}, {}));
  }

  BuiltVariant c() {
    const Manifest::CVariant& c = *manifest_.c;
    const fs::path dst = begin("neuron-c-" + host_platform());
    const std::string library = "lib" + manifest_.identifier() + ".so";
    const std::vector<std::string> sources = matching_files(folder_, c.sources);
    write_file(dst / "include" / fs::path(c.header).filename(), read_file(folder_ / c.header));
    make_folders(dst / "lib");
    // The C++ run-time library goes inside, unseen: any C program can load it, whatever it links itself. What
    // nobody calls stays out: std::random_device alone would ask for glibc 2.36.
    compile({.root = folder_,
             .sources = sources,
             .include = c.include,
             .system_include = {},
             .flags = {"-pthread"},
             .link = {"-pthread", "-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL",
                      "-Wl,--gc-sections", "-Wl,--no-undefined", "-Wl,-soname," + library, "-s"},
             .output = dst / "lib" / library},
            options_.on_progress);
    write_file(dst / cmake_config_name(manifest_), c_config(manifest_));
    write_file(dst / cmake_version_name(manifest_), config_version(manifest_));
    return end(dst, "c", source_digest(c.include, sources));
  }

  BuiltVariant torch() {
    const Manifest::TorchVariant& torch = *manifest_.torch;
    const std::string abi = std::to_string(torch.abi_major) + std::to_string(torch.abi_minor);
    const fs::path dst = begin("torch-stable-abi" + abi + "-cpu-" + host_platform());
    const std::vector<std::string> sources = matching_files(folder_, torch.sources);
    const fs::path libtorch = torch_folder(torch);
    stage_folder(folder_, torch.package, dst);
    if (!fs::exists(dst / "__init__.py")) {
      throw HubError(ErrorKind::usage, (folder_ / torch.package).string() + " has no __init__.py",
                     "package in [variants.torch] names the folder of a Python package");
    }
    std::vector<std::string> folders = torch.include;
    folders.push_back(torch.package);
    const std::string digest = source_digest(folders, sources);
    const std::string id = id_of("cpu", digest);
    write_file(dst / "_build.py",
               "\"\"\"What differs between builds; written by `kernels build`.\"\"\"\n\nNAMESPACE = \"" + id +
                   "\"  # of the operators: torch.ops.<NAMESPACE>\nVERSION = \"" + manifest_.version.text() +
                   "\"\n");
    char target[32];  // PyTorch's own form of a version: a byte each for major and minor, then the rest
    std::snprintf(target, sizeof target, "0x%02x%02x000000000000", static_cast<unsigned>(torch.abi_major),
                  static_cast<unsigned>(torch.abi_minor));
    compile(
        {.root = folder_,
         .sources = sources,
         .include = torch.include,
         .system_include = {libtorch / "include"},
         .flags = {std::string("-DTORCH_TARGET_VERSION=") + target, "-DNEURON_KERNELS_OPS_NAMESPACE=" + id},
         .link = {"-L" + (libtorch / "lib").string(), "-ltorch_cpu", "-lc10", "-s"},
         .output = dst / "ops.so"},
        options_.on_progress);
    facts_.python_depends = torch.python_depends;
    BuiltVariant built = end(dst, "cpu", digest);
    facts_.python_depends.clear();
    return built;
  }

 private:
  // A variant is made beside its place and moved there when it is whole.
  fs::path begin(const std::string& name) {
    options_.on_progress("building " + name);
    fs::path dst = options_.into / "incomplete" / name;
    fs::remove_all(dst);
    make_folders(dst);
    return dst;
  }

  BuiltVariant end(const fs::path& made, const std::string& kind, const std::string& digest) {
    const std::string name = made.filename().string();
    for (const char* file : {"LICENSE", "LICENSE.md", "LICENSE.txt"}) {
      if (fs::is_regular_file(folder_ / file)) write_file(made / file, read_file(folder_ / file));
    }
    facts_.id = id_of(kind, digest);
    write_file(made / "metadata.json", metadata_text(manifest_, facts_, made));
    const fs::path dst = options_.into / "build" / name;
    fs::remove_all(dst);
    make_folders(dst.parent_path());
    fs::rename(made, dst);
    fs::remove_all(made.parent_path());
    return {name, dst};
  }

  std::string id_of(const std::string& kind, const std::string& digest) const {
    return "_" + manifest_.identifier() + (kind.empty() ? "" : "_" + kind) + "_" + digest.substr(0, 10);
  }

  // Of what a variant is made from, so that the id of a build does not depend on the compiler's output.
  std::string source_digest(const std::vector<std::string>& folders,
                            const std::vector<std::string>& files) const {
    Hasher hasher = Hasher::sha256();
    hasher.add(manifest_.name + " " + manifest_.version.text() + "\n");
    const auto add = [&](const std::string& path) {
      hasher.add(path + " " + sha256_hex_of_file(folder_ / path) + "\n");
    };
    for (const std::string& folder : folders) {
      for (const std::string& file : published_files(folder_, folder)) add(folder + "/" + file);
    }
    for (const std::string& file : files) add(file);
    return hasher.finish_hex();
  }

  void require_headers(const fs::path& include) const {
    for (const Manifest::Kernel& kernel : manifest_.kernels) {
      if (fs::is_regular_file(include / kernel.header)) continue;
      throw HubError(ErrorKind::usage,
                     "kernel '" + kernel.name + "' names the header '" + kernel.header +
                         "', which is not in " + (folder_ / manifest_.header->include).string(),
                     "correct the header in kernel.toml");
    }
  }

  // PyTorch is found without being imported, which would take seconds.
  static fs::path torch_folder(const Manifest::TorchVariant& torch) {
    std::vector<std::string> command = words_of_variable("PYTHON", "python3");
    const std::string python = command[0];
    command.insert(command.end(), {"-c",
                                   "import importlib.util, os\n"
                                   "spec = importlib.util.find_spec('torch')\n"
                                   "print(os.path.dirname(spec.origin) if spec and spec.origin else '')"});
    const Finished found = run_program(command, Capture::output);
    fs::path folder = found.output.substr(0, found.output.find('\n'));
    const std::string needed = std::to_string(torch.abi_major) + "." + std::to_string(torch.abi_minor);
    if (found.status != 0 || folder.empty()) {
      throw HubError(
          ErrorKind::failed, "no PyTorch in '" + python + "'; needed is PyTorch " + needed + " or newer",
          "set PYTHON to the interpreter of an environment that has it, or leave the variant out by "
          "--variant");
    }
    const std::string text = read_file(folder / "version.py");
    const std::string_view mark = "__version__ = '";
    const std::size_t at = text.find(mark);
    const std::string version = at == text.npos ? "" : text.substr(at + mark.size(), 12);
    const int major = std::atoi(version.c_str());
    const std::size_t dot = version.find('.');
    const int minor = dot == version.npos ? 0 : std::atoi(version.c_str() + dot + 1);
    if (std::pair(major, minor) < std::pair(torch.abi_major, torch.abi_minor)) {
      throw HubError(ErrorKind::failed,
                     "PyTorch in " + folder.string() + " is " + std::to_string(major) + "." +
                         std::to_string(minor) + "; needed is " + needed + " or newer",
                     "set PYTHON to the interpreter of an environment that has it");
    }
    return folder;
  }

  fs::path folder_;
  const Manifest& manifest_;
  const BuildOptions& options_;
  VariantFacts facts_;
};

}  // namespace

std::vector<BuiltVariant> build_package(const fs::path& folder, const Manifest& manifest,
                                        const BuildOptions& options) {
  struct Kind {
    const char* name;
    bool named;
    BuiltVariant (Builder::*build)();
  };
  const Kind kinds[] = {{"header", manifest.header.has_value(), &Builder::header},
                        {"torch", manifest.torch.has_value(), &Builder::torch},
                        {"c", manifest.c.has_value(), &Builder::c}};
  std::string named;
  for (const Kind& kind : kinds) {
    if (kind.named) named += (named.empty() ? "" : ", ") + std::string(kind.name);
  }
  if (named.empty()) {
    throw HubError(ErrorKind::usage, "kernel.toml names no variant to build",
                   "add at least [variants.header] with include = \"include\"");
  }
  for (const std::string& wish : options.variants) {
    const auto* at =
        std::find_if(std::begin(kinds), std::end(kinds), [&](const Kind& k) { return wish == k.name; });
    if (at == std::end(kinds) || !at->named) {
      throw HubError(ErrorKind::usage, "variant '" + wish + "'; kernel.toml names " + named);
    }
  }
  Builder builder(fs::absolute(folder).lexically_normal(), manifest, options);
  std::vector<BuiltVariant> built;
  for (const Kind& kind : kinds) {
    const bool wanted =
        options.variants.empty() ||
        std::find(options.variants.begin(), options.variants.end(), kind.name) != options.variants.end();
    if (kind.named && wanted) built.push_back((builder.*kind.build)());
  }
  write_file(options.into / Manifest::file_name, read_file(folder / Manifest::file_name));
  return built;
}

std::vector<BuiltVariant> built_variants(const fs::path& into) {
  std::vector<BuiltVariant> variants;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(into / "build", error)) {
    if (fs::is_regular_file(entry.path() / "metadata.json")) {
      variants.push_back({entry.path().filename().string(), entry.path()});
    }
  }
  if (variants.empty()) {
    throw HubError(ErrorKind::not_found, "no variant with a metadata.json in " + (into / "build").string(),
                   "make one by: kernels build");
  }
  std::sort(variants.begin(), variants.end(),
            [](const BuiltVariant& a, const BuiltVariant& b) { return a.name < b.name; });
  return variants;
}

std::string host_platform() {
  struct utsname system {};
  ::uname(&system);
  const std::string machine = system.machine, name = system.sysname;
  if (name != "Linux" || (machine != "x86_64" && machine != "aarch64")) {
    throw HubError(
        ErrorKind::incompatible,
        "this is " + machine + " with " + name + "; libraries are built for x86_64 and aarch64 with Linux",
        "build the header variant alone: --variant header");
  }
  return machine + "-linux";
}

}  // namespace neuron_kernels::hub
