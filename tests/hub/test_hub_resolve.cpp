// The resolver against brute force over all choices, and how it explains a conflict.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/resolve.hpp"

using namespace neuron_kernels::hub;

namespace {

Version v(const std::string& text) { return *Version::parse(text); }
Dependency need(const std::string& repository, const std::string& range) {
  return {repository, Range::parse(range)};
}

struct World : PackageSource {
  std::map<std::string, std::vector<std::pair<Version, std::vector<Dependency>>>> packages;
  std::map<std::string, int> asked;

  std::vector<Version> versions(const std::string& repository) override {
    ++asked[repository];
    std::vector<Version> all;
    if (!packages.contains(repository)) throw HubError(ErrorKind::not_found, "no " + repository);
    for (const auto& [version, needs] : packages[repository]) all.push_back(version);
    return all;
  }
  std::vector<Dependency> dependencies(const std::string& repository, const Version& version) override {
    ++asked[repository + version.text()];
    for (const auto& [held, needs] : packages[repository]) {
      if (held == version) return needs;
    }
    FAIL("asked for a version that does not exist");
    return {};
  }
  // Whether every request of `wanted` and of the chosen packages is kept, and nothing else is chosen.
  bool solves(const std::vector<Dependency>& wanted, const Resolution& chosen) {
    std::vector<Dependency> requests = wanted;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto at = chosen.find(requests[i].repository);
      if (at == chosen.end() || !requests[i].range.contains(at->second)) return false;
      bool seen = false;
      for (std::size_t j = 0; j < i; ++j) seen = seen || requests[j].repository == requests[i].repository;
      if (seen) continue;
      for (const Dependency& one : dependencies(at->first, at->second)) requests.push_back(one);
    }
    return std::all_of(chosen.begin(), chosen.end(), [&](const auto& one) {
      return std::any_of(requests.begin(), requests.end(),
                         [&](const Dependency& d) { return d.repository == one.first; });
    });
  }
  // All solutions, by trying every version, or none, of every package.
  std::vector<Resolution> solutions(const std::vector<Dependency>& wanted) {
    std::vector<Resolution> all{{}};
    for (const auto& [repository, held] : packages) {
      std::vector<Resolution> longer;
      for (const Resolution& r : all) {
        longer.push_back(r);
        for (const auto& [version, needs] : held) {
          Resolution more = r;
          more.emplace(repository, version);
          longer.push_back(more);
        }
      }
      all = std::move(longer);
    }
    std::erase_if(all, [&](const Resolution& r) { return !solves(wanted, r); });
    return all;
  }
};

const char* const names[] = {"o/a", "o/b", "o/c", "o/d"};

World random_world(std::mt19937& source) {
  static const char* const versions[] = {"1.0.0", "1.1.0", "2.0.0", "2.1.0-a"};
  static const char* const ranges[] = {"*", "^1", "^2", "=1.0.0", ">=1.1", "<2", "=2.1.0-a", "~1.1"};
  World world;
  for (const char* name : names) {
    auto& held = world.packages[name];
    for (const char* version : versions) {
      if (source() % 3 == 0) continue;
      std::vector<Dependency> needs;
      for (const char* other : names) {
        if (other != name && source() % 3 == 0) needs.push_back(need(other, ranges[source() % 8]));
      }
      held.push_back({v(version), needs});
    }
    std::shuffle(held.begin(), held.end(), source);
  }
  return world;
}

}  // namespace

TEST_CASE("resolve finds a solution exactly if there is one, with the first package as high as can be") {
  std::mt19937 source(11);
  int solved = 0;
  for (int i = 0; i < 1500; ++i) {
    World world = random_world(source);
    const std::vector<Dependency> wanted{need("o/a", source() % 2 != 0 ? "*" : "^1"), need("o/c", "*")};
    const auto all = world.solutions(wanted);
    world.asked.clear();
    std::optional<Resolution> found;
    try {
      found = resolve(wanted, world);
    } catch (const HubError& error) {
      REQUIRE(error.kind == ErrorKind::incompatible);
    }
    CAPTURE(i);
    REQUIRE(found.has_value() == !all.empty());
    for (const auto& [question, times] : world.asked) CHECK(times == 1);
    if (!found) continue;
    ++solved;
    CHECK(world.solves(wanted, *found));
    for (const Resolution& other : all) CHECK_FALSE(found->at("o/a") < other.at("o/a"));
  }
  CHECK(solved > 150);
  CHECK(solved < 1350);
}

TEST_CASE("a preferred version is kept where it fits") {
  std::mt19937 source(12);
  for (int i = 0; i < 300; ++i) {
    World world = random_world(source);
    const std::vector<Dependency> wanted{need("o/a", "*"), need("o/b", "*")};
    const auto all = world.solutions(wanted);
    if (all.empty()) continue;
    const Resolution& held = all[source() % all.size()];
    CHECK(resolve(wanted, world, held) == held);
  }
}

TEST_CASE("a conflict is explained by who asks for what") {
  World world;
  world.packages["o/a"] = {{v("1.2.0"), {need("o/c", "^1")}}};
  world.packages["o/b"] = {{v("2.0.0"), {need("o/d", "*")}}};
  world.packages["o/d"] = {{v("0.3.0"), {need("o/c", "^2")}}};
  world.packages["o/c"] = {{v("1.0.0"), {}}, {v("2.0.0"), {}}};
  try {
    resolve({need("o/a", "^1"), need("o/b", "2")}, world);
    FAIL("no error");
  } catch (const HubError& error) {
    CHECK(error.kind == ErrorKind::incompatible);
    CHECK(std::string(error.what()) ==
          "no version of o/c is all that is asked for:\n"
          "  ^1 by o/a 1.2.0 (^1 by this package)\n"
          "  ^2 by o/d 0.3.0 (* by o/b 2.0.0 (2 by this package))\n"
          "  there is 2.0.0, 1.0.0");
  }
  try {
    resolve({need("o/a", "^7")}, world);
    FAIL("no error");
  } catch (const HubError& error) {
    CHECK_THAT(error.what(), contains_text("^7 by this package\n  there is 1.2.0"));
  }
}

TEST_CASE("circles resolve") {
  World world;
  world.packages["o/a"] = {{v("1.0.0"), {need("o/b", "^1")}}};
  world.packages["o/b"] = {{v("1.0.0"), {need("o/a", "^1")}}};
  CHECK(resolve({need("o/a", "*")}, world).size() == 2);
}
