// Names of variants, and which one is taken: the rules of Hugging Face's kernels 0.17.
#include <string>
#include <vector>

#include "catch.hpp"
#include "hub/variant.hpp"

namespace hub = neuron_kernels::hub;
using Kind = hub::Variant::Kind;

namespace {

hub::Platform platform(const char* torch, const char* backend) {
  hub::Platform p{.arch = "x86_64", .os = "linux", .backend = *hub::Backend::parse(backend)};
  p.torch = hub::ShortVersion::parse(torch);
  if (p.torch) p.cxx11_abi = true;
  return p;
}

std::string taken(const std::vector<std::string>& names, const hub::Platform& p) {
  const auto decisions = hub::decide_variants(names, p);
  return decisions.empty() || !decisions.front().accepted() ? "" : decisions.front().variant.name;
}

std::string reason(const std::string& name, const hub::Platform& p) {
  return hub::decide_variants(std::vector{name}, p).at(0).reason;
}

}  // namespace

TEST_CASE("names of variants are read") {
  const auto tagged = hub::parse_variant("torch213-cxx11-cu130-x86_64-linux");
  REQUIRE(tagged);
  CHECK(tagged->kind == Kind::torch);
  CHECK(tagged->framework.text() == "2.13");
  CHECK(tagged->cxx11_abi == true);
  CHECK(tagged->backend.name == "cuda");
  CHECK(tagged->backend.version->text() == "13.0");
  CHECK(tagged->arch == "x86_64");
  CHECK(tagged->os == "linux");
  const auto stable = hub::parse_variant("torch-stable-abi29-rocm71-aarch64-linux");
  REQUIRE(stable);
  CHECK(stable->kind == Kind::torch_stable_abi);
  CHECK(stable->framework.text() == "2.9");
  CHECK(stable->backend.text() == "rocm71");
  CHECK(hub::parse_variant("torch212-metal-aarch64-darwin")->cxx11_abi == std::nullopt);
  CHECK(hub::parse_variant("torch212-xpu20253-x86_64-linux")->backend.version->text() == "2025.3");
  CHECK(hub::parse_variant("tvm-ffi01-cu128-x86_64-linux")->framework.text() == "0.1");
  CHECK(hub::parse_variant("torch-universal")->kind == Kind::noarch);
  CHECK(hub::parse_variant("neuron-header")->kind == Kind::header_only);
  CHECK(hub::parse_variant("neuron-c-aarch64-linux")->arch == "aarch64");
  CHECK(hub::variant_folder("header-only") == "neuron-header");
}

TEST_CASE("other names are no variants") {
  for (const char* name :
       {"", "torch", "torch-", "torch-foo", "torch2-cpu-x86_64-linux", "torch213-cpu-x86_64",
        "torch213-cxx12-cpu-x86_64-linux", "torch213-cu1-x86_64-linux", "tvm-ffi1-cpu-x86_64-linux",
        "neuron-c-x86_64", "neuron-c-a-b-c", "jax-cpu", "torch-stable-abi-cpu-x86_64-linux"}) {
    CAPTURE(name);
    CHECK_FALSE(hub::parse_variant(name));
  }
}

TEST_CASE("reasons have the words of the Python client") {
  const hub::Platform cpu = platform("2.13", "cpu"), cuda = platform("2.13", "cu130");
  CHECK(reason("torch212-cpu-x86_64-linux", cpu) ==
        "Torch version (2.12) does not match environment Torch version (2.13)");
  CHECK(reason("torch213-cpu-aarch64-linux", cpu) == "CPU (aarch64) does not match system CPU (x86_64)");
  CHECK(reason("torch213-cpu-x86_64-windows", cpu) == "OS (windows) does not match system OS (linux)");
  CHECK(reason("torch213-cu130-x86_64-linux", cpu) ==
        "backend (cu130) does not match selected backend (cpu)");
  CHECK(reason("torch213-cu132-x86_64-linux", cuda) ==
        "CUDA version (13.2) is not compatible with system CUDA version (13.0)");
  CHECK(reason("torch213-cu126-x86_64-linux", cuda) ==
        "CUDA version (12.6) is not compatible with system CUDA version (13.0)");
  CHECK(reason("torch-stable-abi214-cpu-x86_64-linux", cpu) ==
        "Torch stable ABI version (2.14) is too new for environment Torch version (2.13)");
  CHECK(reason("torch-cuda", cpu) ==
        "backend (cuda) does not match system backend (cpu) and is not universal");
  CHECK(reason("torch213-cxx98-cpu-x86_64-linux", cpu) ==
        "Torch CXX11 ABI (cxx98) does not match environment Torch CXX11 ABI (cxx11)");
  CHECK(reason("tvm-ffi01-cpu-x86_64-linux", cpu) ==
        "tvm-ffi version (0.1) does not match environment tvm-ffi version (none)");
  CHECK(reason("torch213-cpu-x86_64-linux", platform("none", "cpu")) ==
        "Torch version (2.13) does not match environment Torch version (none)");
  hub::Platform free_threaded = cpu;
  free_threaded.old_free_threaded = true;
  CHECK(reason("torch213-cpu-x86_64-linux", free_threaded) ==
        "arch kernel not supported on free-threaded Python <3.15");
  CHECK(reason("torch-cpu", free_threaded).empty());
}

TEST_CASE("the order of suitable variants") {
  const hub::Platform cuda = platform("2.13", "cu132");
  std::vector<std::string> names{"neuron-header",
                                 "neuron-c-x86_64-linux",
                                 "torch-universal",
                                 "torch-cuda",
                                 "torch213-cxx11-cu130-x86_64-linux",
                                 "torch213-cxx11-cu132-x86_64-linux",
                                 "torch213-cu130-x86_64-linux",
                                 "torch-stable-abi29-cu132-x86_64-linux",
                                 "torch-stable-abi210-cu130-x86_64-linux",
                                 "torch-stable-abi210-cu132-x86_64-linux"};
  for (std::size_t left = names.size(); left > 0;
       --left) {  // from the last on, each is best of those before it
    CHECK(taken(names, cuda) == names.back());
    if (names.back() == "torch213-cu130-x86_64-linux") break;
    names.pop_back();
  }
  CHECK(taken({"torch213-cxx11-cu130-x86_64-linux", "torch213-cxx11-cu132-x86_64-linux"}, cuda) ==
        "torch213-cxx11-cu132-x86_64-linux");
  CHECK(taken({"torch-universal", "torch-cuda"}, cuda) == "torch-cuda");
  CHECK(taken({"neuron-header", "neuron-c-x86_64-linux"}, cuda) == "neuron-c-x86_64-linux");
  CHECK(taken({"neuron-header", "neuron-c-aarch64-linux"}, cuda) == "neuron-header");
  CHECK(taken({"torch-stable-abi29-cu130-x86_64-linux"}, platform("2.13", "cu130")) ==
        "torch-stable-abi29-cu130-x86_64-linux");
  hub::Platform cann = platform("2.13", "cann82");
  CHECK(taken({"torch-npu"}, cann) == "torch-npu");
}

TEST_CASE("the trace names each variant once") {
  const std::vector<std::string> names{"torch212-cpu-x86_64-linux", "torch-universal", "torch-cpu"};
  CHECK(hub::trace_text(hub::decide_variants(names, platform("2.13", "cpu")), "  ") ==
        "  torch-cpu compatible, preferred\n"
        "  torch-universal compatible\n"
        "  torch212-cpu-x86_64-linux: Torch version (2.12) does not match environment Torch version (2.13)");
}

TEST_CASE("backends on the command line") {
  CHECK(hub::Backend::parse("cuda:13.0")->text() == "cu130");
  CHECK(hub::Backend::parse("cuda12.8")->text() == "cu128");
  CHECK(hub::Backend::parse("rocm710")->version->text() == "71.0");  // the last digit is the minor number
  CHECK_FALSE(hub::Backend::parse("cu"));
  CHECK_FALSE(hub::Backend::parse("opencl"));
}
