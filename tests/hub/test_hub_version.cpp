// Versions and ranges: the specification's own examples, cargo's rules, and properties over a universe of
// versions.
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/version.hpp"

using neuron_kernels::hub::HubError;
using neuron_kernels::hub::Range;
using neuron_kernels::hub::Version;

namespace {

Version version(const std::string& text) {
  const auto parsed = Version::parse(text);
  REQUIRE(parsed);
  return *parsed;
}

bool contains(const char* range, const char* v) { return Range::parse(range).contains(version(v)); }

// Versions around every bound that random_range can make, with the successors of its pre-releases.
const std::vector<Version>& universe() {
  static const std::vector<Version> all = [] {
    std::vector<Version> versions;
    for (int major = 0; major < 5; ++major) {
      for (int minor = 0; minor < 5; ++minor) {
        for (int patch = 0; patch < 5; ++patch) {
          for (const char* pre : {"", "0", "0.0", "a", "a.0", "a.1", "a.1.0", "b", "b.0"}) {
            versions.push_back({major, minor, patch, pre, {}});
          }
        }
      }
    }
    return versions;
  }();
  return all;
}

class Random {
 public:
  explicit Random(unsigned seed) : source_(seed) {}
  int below(int n) { return static_cast<int>(source_() % static_cast<unsigned>(n)); }
  std::string requirement() {
    static const char* const operators[] = {"", "^", "~", "=", "<", "<=", ">", ">="};
    static const char* const pres[] = {"", "", "", "-a", "-a.1", "-b"};
    const int numbers = 1 + below(3);
    std::string text = operators[below(8)];
    for (int i = 0; i < numbers; ++i) text += (i != 0 ? "." : "") + std::to_string(below(4));
    return numbers == 3 ? text + pres[below(6)] : text;
  }
  std::string range() {
    std::string text = requirement();
    for (int more = below(3); more > 0; --more) text += (below(2) != 0 ? ", " : " ") + requirement();
    return text;
  }

 private:
  std::mt19937 source_;
};

}  // namespace

TEST_CASE("versions are those of the specification") {
  for (const char* text :
       {"0.0.4", "1.2.3", "10.20.30", "1.1.2-prerelease+meta", "1.1.2+meta", "1.1.2+meta-valid",
        "1.0.0-alpha", "1.0.0-alpha.beta.1", "1.0.0-alpha0.valid", "1.0.0-0A.is.legal", "1.0.0-rc.1+build.1",
        "2.0.0+build.1848", "1.0.0+0.build.1-rc.10000aaa-kk-0.1", "1.2.3----RC-SNAPSHOT.12.9.1--.12+788",
        "2000000000.0.0"}) {
    CAPTURE(text);
    CHECK(version(text).text() == text);
  }
  for (const char* text :
       {"",       "1",          "1.2",    "v1.2.3", "1.2.3.4",    "01.1.1",          "1.01.1",
        "1.1.01", "1.2.3-0123", "1.2.3-", "1.2.3+", "1.2.3-a..b", "1.2.3-a_b",       "1.2.3+a+b",
        "-1.2.3", "+1.2.3",     "1.2.3 ", " 1.2.3", "1.2.-3",     "99999999999.0.0", "2000000001.0.0"}) {
    CAPTURE(text);
    CHECK_FALSE(Version::parse(text));
  }
}

TEST_CASE("precedence is the specification's and a total order") {
  const char* const rising[] = {"0.0.0-0",          "0.9.0",      "1.0.0-alpha",  "1.0.0-alpha.1",
                                "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
                                "1.0.0-rc.1",       "1.0.0",      "1.0.1",        "1.2.0",
                                "1.10.0",           "2.0.0"};
  for (std::size_t i = 0; i < std::size(rising); ++i) {
    for (std::size_t j = 0; j < std::size(rising); ++j) {
      CAPTURE(rising[i], rising[j]);
      CHECK((version(rising[i]) <=> version(rising[j])) == (i <=> j));
    }
  }
  CHECK(version("1.0.0+a") == version("1.0.0+b"));
}

TEST_CASE("ranges mean what cargo means by them") {
  struct Case {
    const char *range, *inside, *outside;
  };
  const Case cases[] = {
      {"1", "1.0.0", "2.0.0"},
      {"1", "1.99.0", "0.9.9"},
      {"1.2", "1.2.0", "1.1.9"},
      {"1.2", "1.9.0", "2.0.0"},
      {"1.2.3", "1.3.0", "1.2.2"},
      {"^0.2.3", "0.2.9", "0.3.0"},
      {"^0.0.3", "0.0.3", "0.0.4"},
      {"^0.0", "0.0.9", "0.1.0"},
      {"^0", "0.9.0", "1.0.0"},
      {"~1.2", "1.2.9", "1.3.0"},
      {"~1", "1.9.9", "2.0.0"},
      {"~1.2.3", "1.2.3", "1.2.2"},
      {">=1 <2", "1.5.0", "2.0.0"},
      {">=1, <2", "1.0.0", "2.0.0-alpha"},
      {"=1.2.3", "1.2.3", "1.2.4"},
      {"=1.2", "1.2.7", "1.3.0"},
      {"*", "0.0.1", "1.0.0-alpha"},
      {"1.2.*", "1.2.7", "1.3.0"},
      {"1.x", "1.9.9", "2.0.0"},
      {">1", "2.0.0", "1.9.9"},
      {">1.2", "1.3.0", "1.2.9"},
      {">1.2.3", "1.2.4", "1.2.3"},
      {"<=1.2", "1.2.9", "1.3.0"},
      {"<=1.2.3", "1.2.3", "1.2.4"},
      {"<1.2", "1.1.9", "1.2.0"},
      {"< 2 , > 1.0", "1.5.0", "2.0.0"},
      {"^1.2.3-a", "1.2.3-b", "1.2.4-b"},
      {"^1.2.3-a", "1.9.0", "1.2.3-0"},
      {">=2.0.0-a <2.0.0", "2.0.0-b", "2.0.0"},
      {"=1.2.3-a", "1.2.3-a", "1.2.3"},
      {"=1.2.3+x", "1.2.3+y", "1.2.4"},
      {">=0.0.0-a", "0.0.0-a", "0.0.1-a"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.range, c.inside, c.outside);
    CHECK(contains(c.range, c.inside));
    CHECK_FALSE(contains(c.range, c.outside));
  }
  CHECK(Range().contains(version("3.0.0")));
  CHECK(Range::parse(">= 1.2   <2").text() == ">=1.2, <2");
  CHECK(Range::exactly(version("1.2.3-a+b")).contains(version("1.2.3-a")));
}

TEST_CASE("what is no range is an error that shows the forms") {
  for (const char* text :
       {"",      " ",   ",",   "1,", ",1", "1,,2",  "latest", "1.2.3.4", ">=",        "!=1",      "1 || 2",
        "1 - 2", "=>1", "^^1", "<*", "v1", "1.*.2", "1.2-a",  "01",      "^1.2.3-01", "1.2.3 \n", "\xff"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Range::parse(text), HubError);
  }
  try {
    Range::parse("latest");
  } catch (const HubError& error) {
    CHECK(error.kind == neuron_kernels::hub::ErrorKind::usage);
    CHECK_THAT(error.what(), contains_text("'latest'"));
    CHECK_THAT(error.hint, contains_text(">=1 <2"));
  }
}

TEST_CASE("a list of requirements holds what every one of them holds") {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const std::string a = random.requirement(), b = random.requirement();
    CAPTURE(a, b);
    const Range ra = Range::parse(a), rb = Range::parse(b), both = Range::parse(a + ", " + b);
    for (const Version& v : universe()) {
      if (!v.pre.empty()) continue;
      if (both.contains(v) != (ra.contains(v) && rb.contains(v))) FAIL_CHECK(v.text());
    }
  }
}

TEST_CASE("a range survives being written and read") {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const std::string text = random.range();
    CAPTURE(text);
    const Range range = Range::parse(text), again = Range::parse(range.text());
    for (const Version& v : universe()) {
      if (range.contains(v) != again.contains(v)) FAIL_CHECK(v.text());
    }
  }
}

TEST_CASE("two ranges intersect exactly if some version is in both") {
  Random random(3);
  int met = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string a = random.range(), b = random.range();
    CAPTURE(a, b);
    const Range ra = Range::parse(a), rb = Range::parse(b);
    bool expected = false;
    for (const Version& v : universe()) expected = expected || (ra.contains(v) && rb.contains(v));
    CHECK(ra.intersects(rb) == expected);
    CHECK(rb.intersects(ra) == expected);
    met += expected ? 1 : 0;
  }
  CHECK(met > 200);
  CHECK(met < 1800);
}

TEST_CASE("the one major version of a range") {
  for (const char* text : {"1", "^1.2", "~1", "=1.2.3", "1.2.*", ">=1.5, <2", ">1.0.0 <1.9"}) {
    CAPTURE(text);
    CHECK(Range::parse(text).only_major() == 1);
  }
  CHECK(Range::parse("<1").only_major() == 0);
  CHECK(Range::parse("^0.1").only_major() == 0);
  for (const char* text : {"*", ">=1", ">=1, <3", "<=1", ">0.9, <1.1"}) {
    CAPTURE(text);
    CHECK_FALSE(Range::parse(text).only_major());
  }
}

TEST_CASE("random text is a range or an error") {
  std::mt19937 source(4);
  const std::string alphabet = "0123.^~<>=-+ax*, ";
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (auto n = source() % 12; n > 0; --n) text += alphabet[source() % alphabet.size()];
    std::string written = "error";
    try {
      written = Range::parse(text).text();
    } catch (const HubError&) {
    }
    if (written.empty()) FAIL_CHECK(text);
  }
}
