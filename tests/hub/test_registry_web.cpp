// What pages say: names that commands take, platforms of variants, parts of long lists, errors.
#include <string>

#include "catch.hpp"
#include "hub/registry/web_layout.hpp"
#include "hub/registry/web_use.hpp"

using namespace neuron_kernels::hub;
using namespace neuron_kernels::hub::registry;

TEST_CASE("a command names a revision as people do, unless a shell could misread it") {
  const std::string commit(40, 'a');
  const Refs refs{
      {{"main", commit}, {"v1", commit}, {"feature/x-1", commit}, {"a;b", commit}, {"$(id)", commit}},
      {{"1.2.0", commit}, {"v1.3.0", commit}, {"v2", commit}, {"1.0.0+b", commit}}};
  CHECK(command_revision(refs, "v1", commit) == "1");
  CHECK(command_revision(refs, "v2", commit) == "v2");  // a tag: "2" would be branch v2
  for (const char* name : {"main", "feature/x-1", "1.2.0", "v1.3.0", "1.0.0+b"})
    CHECK(command_revision(refs, name, commit) == name);
  for (const char* name : {"a;b", "$(id)", "refs/pr/1", "aaaaaaa", "no-such-name", ""})
    CHECK(command_revision(refs, name, commit) == commit);
}

TEST_CASE("a version branch stands for the commit that it holds") {
  const std::string old(40, 'a'), now(40, 'b');
  const Refs refs{{{"main", old}, {"v0", now}}, {{"0.1.0", old}, {"0.2.0", now}}};
  CHECK(version_branch_of(refs, now) == 0);
  CHECK_FALSE(version_branch_of(refs, old));
}

TEST_CASE("a variant's name says what it runs on") {
  const std::pair<const char*, const char*> cases[] = {
      {"neuron-header", "C++ headers, any platform"},
      {"neuron-c-aarch64-linux", "C library, aarch64 linux"},
      {"torch-stable-abi210-cpu-x86_64-linux", "PyTorch 2.10 or newer, CPU, x86_64 linux"},
      {"torch213-cxx11-cu130-x86_64-linux", "PyTorch 2.13, C++11 ABI, CUDA 13.0, x86_64 linux"},
      {"torch212-rocm71-x86_64-linux", "PyTorch 2.12, ROCm 7.1, x86_64 linux"},
      {"tvm-ffi01-cpu-x86_64-linux", "tvm-ffi 0.1, CPU, x86_64 linux"},
      {"torch-universal", "PyTorch, no compiled code, any backend"}};
  for (const auto& [name, text] : cases) {
    const auto variant = parse_variant(name);
    REQUIRE(variant);
    CHECK(platform_text(*variant) == text);
  }
}

TEST_CASE("a page of a list is one that there is, whatever was asked for") {
  CHECK(Paging("3", 50, 120).first() == 100);
  CHECK(Paging("3", 50, 120).end() == 120);
  for (const char* wanted : {"", "0", "-1", "x", "99999999999999999999"})
    CHECK(Paging(wanted, 50, 120).page == 1);
  CHECK(Paging("9", 50, 120).page == 3);
  CHECK(Paging("2", 50, 0).pages() == 1);
  CHECK(paging_links(Paging("1", 50, 50), Address()).empty());
  CHECK_THAT(paging_links(Paging("2", 50, 120), Address::of({"kernels"}), "a&b").markup(),
             contains_text("href=\"/kernels?search=a%26b&amp;page=3\""));
}

TEST_CASE("no repository and a hidden one give the same page, which quotes errors as text") {
  const Reply anonymous = error_page({401, "Invalid username or password.", "RepoNotFound", {}});
  const Reply member = error_page({404, "Repository not found", "RepoNotFound", {}});
  CHECK(anonymous.status == 404);
  CHECK(anonymous.body == member.body);
  CHECK_THAT(error_page({400, "bad <b>", "", {}}).body, contains_text("bad &lt;b&gt;"));
}
