// kernel.toml: what is read, and that every mistake is an error with file, line, key and what is allowed.
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/manifest.hpp"

using namespace neuron_kernels::hub;

namespace {

const std::string head =
    "schema = 1\n[package]\nname = \"my-scale\"\nversion = \"1.2.3\"\nlicense = \"MIT\"\n";

std::string error_of(const std::string& text) {
  try {
    Manifest::parse(text);
  } catch (const HubError& error) {
    CHECK(error.kind == ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

std::string own_manifest() {
  std::ifstream file(std::string(NEURON_KERNELS_SOURCE_DIR) + "/kernel.toml");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a whole manifest is read (S-CFG-04: numbers and ranges)") {
  const Manifest m = Manifest::parse(head + R"(
description = "scales"
repository = "https://example.org/scale"
[[kernel]]
name = "scale"
header = "scale/scale.hpp"
entry = "scale::scale"
dtypes = ["f32", "bf16",]
chips = ["trn2"]
program = "scale::scale_program"
[[kernel]]
name = "shift"
header = "scale/shift.hpp"
entry = "scale::shift"
program = "scale::shift_program"
program-header = "scale/shift_program.hpp"
[variants.header]
include = "include"
[variants.torch]
package = "python/my_scale"
sources = ["csrc/*.cpp"]
include = ["include"]
abi = "2.11"
python-depends = ["einops"]
[variants.c]
header = "c/scale.h"
sources = ["c/scale.cpp"]
[dependencies]
"org/number" = 1
"org/spec" = ">=0.1.2,<0.2.0"
)");
  CHECK(m.name == "my-scale");
  CHECK(m.identifier() == "my_scale");
  CHECK(m.version.text() == "1.2.3");
  CHECK(m.branch() == "v1");
  REQUIRE(m.kernels.size() == 2);
  CHECK(m.kernels[0].program == "scale::scale_program");
  CHECK(m.kernels[0].program_header == "scale/scale.hpp");
  CHECK(m.kernels[1].program_header == "scale/shift_program.hpp");
  CHECK(m.kernels[0].entry == "scale::scale");
  CHECK(m.kernels[0].dtypes == std::vector<std::string>{"f32", "bf16"});
  REQUIRE((m.header && m.torch && m.c));
  CHECK(m.torch->abi_minor == 11);
  CHECK(m.torch->sources == std::vector<std::string>{"csrc/*.cpp"});
  REQUIRE(m.dependencies.size() == 2);
  CHECK(m.dependencies[0].range.contains(*Version::parse("1.9.0")));
  CHECK_FALSE(m.dependencies[0].range.contains(*Version::parse("2.0.0")));
  CHECK(m.dependencies[1].range.text() == ">=0.1.2, <0.2.0");
}

TEST_CASE("this repository's own manifest is one") {
  const Manifest m = Manifest::parse(own_manifest());
  CHECK(m.name == "neuron-kernels");
  CHECK(m.kernels.size() == 5);
  CHECK((m.header && m.torch && m.c));
}

TEST_CASE("S-CFG-03, S-CFG-04: mistakes in a manifest name line, key and what is allowed") {
  struct Case {
    std::string text, message;
  };
  const Case cases[] = {
      {"", "kernel.toml:1: schema is missing; allowed is an integer"},
      {"schema = 2", "schema is 2; allowed is 1"},
      {"schema = \"1\"", "schema is '1'; allowed is an integer"},
      {"schema = 1", "package is missing"},
      {"schema = 1\npackage = 3", "kernel.toml:2: package is 3; allowed is a table, [package]"},
      {head + "backend = 1\n", "kernel.toml:6: unknown key 'package.backend'; allowed are name, version"},
      {head + "[general]\n", "kernel.toml:6: unknown key 'general'; allowed are schema, package, kernel"},
      {head + "name = \"b\"\n", "kernel.toml:6: "},
      {"schema = 1\n[package]\nname = \"My\"\n",
       "kernel.toml:3: package.name is 'My'; allowed is lower-case"},
      {"schema = 1\n[package]\nname = \"ab\"\nversion = \"1.0\"\n",
       "package.version is '1.0'; allowed is a version"},
      {"schema = 1\n[package]\nname = \"ab\"\nversion = 1.0\n",
       "package.version is 1.0; allowed is a string"},
      {head + "repository = \"git@x\"\n", "package.repository is 'git@x'; allowed is a URL"},
      {head + "kernel = 1\n[kernel]\n", "unknown key 'package.kernel'"},
      {head + "[kernel]\nname = \"a\"\n", "allowed is an array of tables, [[kernel]]"},
      {head + "[[kernel]]\nname = \"1a\"\n", "kernel.toml:7: kernel.name is '1a'; allowed is an identifier"},
      {head + "[[kernel]]\nname = \"a\"\nheader = \"/etc/x.hpp\"\n",
       "kernel.header is '/etc/x.hpp'; allowed is a rel"},
      {head + "[[kernel]]\nname = \"a\"\nheader = \"a.hpp\"\nentry = \"a:b\"\n", "kernel.entry is 'a:b'"},
      {head + "[[kernel]]\nname = \"a\"\nheader = \"a.hpp\"\nentry = \"a\"\nchips = [\"trn9\"]\n",
       "kernel.toml:10: kernel.chips is 'trn9'; allowed is each of trn1, trn2, trn3"},
      {head + "[[kernel]]\nname = \"a\"\nheader = \"a.hpp\"\nentry = \"a\"\ndtypes = [\"f32\", \"f32\"]\n",
       "twice"},
      {head + "[[kernel]]\nname = \"a\"\nheader = \"a.hpp\"\nentry = \"a\"\nprogram = \"a b\"\n",
       "kernel.toml:10: kernel.program is 'a b'; allowed is a qualified C++ name"},
      {head + "[[kernel]]\nname = \"a\"\nheader = \"a.hpp\"\nentry = \"a\"\nprogram-header = \"b.hpp\"\n",
       "kernel.program-header is given without program"},
      {head + "[variants]\nheader = true\n",
       "variants.header is true; allowed is a table, [variants.header]"},
      {head + "[variants.cuda]\n", "unknown key 'variants.cuda'; allowed are header, torch, c"},
      {head + "[variants.header]\ninclude = \"../x\"\n", "variants.header.include is '../x'"},
      {head + "[variants.torch]\npackage = \"p\"\nsources = [\"*/a.cpp\"]\n",
       "'*' in the last part of a path only"},
      {head + "[variants.torch]\npackage = \"p\"\nsources = [1]\n", "allowed is an array of strings"},
      {head + "[variants.torch]\npackage = \"p\"\nsources = [\"a\"]\nabi = \"2.7\"\n", "abi is '2.7'"},
      {head + "[dependencies]\n\"org/relu\" = true\n",
       "kernel.toml:7: dependencies.org/relu is true; allowed is a version"},
      {head + "[dependencies]\n\"org/relu\" = -1\n", "dependencies.org/relu is -1"},
      {head + "[dependencies]\n\"org/relu\" = \"latest\"\n", "dependencies.org/relu is 'latest'"},
      {head + "[dependencies]\nrelu = 1\n",
       "dependencies.relu is not a repository; allowed is \"owner/name\""},
      {head + "[dependencies]\n\"org/relu\" = 1\n\"Org/relu\" = 1\n",
       "in another case; allowed is each repository once"},
      {head + "[dependencies]\n\"org/relu\" = 1\n\"org/relu\" = 2\n", "kernel.toml:8: "},
      {head + "x = [", "kernel.toml:6: "},
      {"schema = 1\n\xff", "kernel.toml:1: "},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK_THAT(error_of(c.text), contains_text(c.message));
  }
}

TEST_CASE("a missing manifest says how to make one") {
  try {
    Manifest::read("/nonexistent");
    FAIL("no error");
  } catch (const HubError& error) {
    CHECK(error.kind == ErrorKind::not_found);
    CHECK_THAT(error.hint, contains_text("kernels new"));
  }
}

TEST_CASE("a damaged manifest is read or is an error") {
  std::mt19937 source(5);
  const std::string whole = own_manifest();
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (auto n = 1 + source() % 4; n > 0; --n) {
      const auto at = source() % text.size();
      switch (source() % 3) {
        case 0:
          text[at] = static_cast<char>(source() % 256);
          break;
        case 1:
          text.erase(at, source() % 20);
          break;
        default:
          text.insert(at, text.substr(source() % text.size(), source() % 20));
      }
    }
    try {
      Manifest::parse(text);
    } catch (const HubError&) {
    }
  }
}

TEST_CASE("repository names are the Hub's") {
  for (const char* name : {"org/name", "Org-1/n.a_me-2"}) CHECK(is_repository_name(name));
  for (const char* name : {"", "name", "/name", "org/", "a/b/c", "org/na--me", "org/na..me", "org/.x",
                           "org/na me", "../x", "org/-x"}) {
    CAPTURE(name);
    CHECK_FALSE(is_repository_name(name));
  }
}
