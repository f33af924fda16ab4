// S-CFG-01 and S-CFG-02: TOML 1.0.0 as others write it, of every kind that the public suite of toml-lang and the
// files of kernels-community have. The inputs are our own.
#include <cmath>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/toml_reader.hpp"

using namespace neuron_kernels::hub;
using nlohmann::json;

namespace {

json as_json(const std::string& text) {
  std::ostringstream stream;
  stream << toml::json_formatter(parse_toml(text, "a.toml"));
  return json::parse(stream.str());
}

}  // namespace

TEST_CASE("S-CFG-01: valid TOML is read for what it says") {
  struct Case {
    const char *text, *expected;
  };
  const Case cases[] = {
      // comments and blank space
      {"", "{}"},
      {"# only a comment", "{}"},
      {"\t a = 1 # b = 2\r\n\r\n", R"({"a":1})"},
      {"a = \"# no comment\" # one", R"({"a":"# no comment"})"},
      // keys
      {"bare_key-1 = 1\n1234 = 2\n-_ = 3", R"({"bare_key-1":1,"1234":2,"-_":3})"},
      {"\"quoted key\" = 1\n'lit\\eral' = 2\n\"\" = 3", R"({"quoted key":1,"lit\\eral":2,"":3})"},
      {"\"\\u00e9\" = 1\n'\xc3\xa8' = 2", "{\"\xc3\xa9\":1,\"\xc3\xa8\":2}"},
      {"a.b.c = 1\na.\"b.c\" = 2\na . d = 3", R"({"a":{"b":{"c":1},"b.c":2,"d":3}})"},
      {"3.14 = 1", R"({"3":{"14":1}})"},
      {"true = 1\nnan = 2", R"({"true":1,"nan":2})"},
      // strings
      {R"(a = "\b\t\n\f\r\"\\\u00e9\U0001f600")",
       "{\"a\":\"\\b\\t\\n\\f\\r\\\"\\\\\xc3\xa9\xf0\x9f\x98\x80\"}"},
      {R"(a = 'C:\no\escape')", R"({"a":"C:\\no\\escape"})"},
      {"a = \"\"\"\nfirst\nsecond\"\"\"", R"({"a":"first\nsecond"})"},
      {"a = \"\"\"one \\\n\n   two\"\"\"", R"({"a":"one two"})"},
      {"a = \"\"\"two quotes: \"\", three: \"\"\\\"\"\"\"", R"({"a":"two quotes: \"\", three: \"\"\""})"},
      {"a = \"\"\"\"in quotes\"\"\"\"", R"({"a":"\"in quotes\""})"},
      {"a = '''\nit's\n''two'' '''", R"({"a":"it's\n''two'' "})"},
      {"a = ''\nb = \"\"", R"({"a":"","b":""})"},
      // integers
      {"a = +99\nb = -17\nc = 0\nd = +0\ne = -0", R"({"a":99,"b":-17,"c":0,"d":0,"e":0})"},
      {"a = 1_000\nb = 5_3_4\nc = 0xDEAD_beef\nd = 0o755\ne = 0b1101",
       R"({"a":1000,"b":534,"c":3735928559,"d":493,"e":13})"},
      {"a = 9223372036854775807\nb = -9223372036854775808",
       R"({"a":9223372036854775807,"b":-9223372036854775808})"},
      // floats
      {"a = +1.0\nb = -0.01\nc = 5e+22\nd = 1E06\ne = -2e-2\nf = 6.626e-34\ng = 9_224.617_4",
       R"({"a":1.0,"b":-0.01,"c":5e22,"d":1e6,"e":-0.02,"f":6.626e-34,"g":9224.6174})"},
      {"a = true\nb = false", R"({"a":true,"b":false})"},
      // dates and times, which JSON has as text
      {"a = 1979-05-27T07:32:00Z\nb = 1979-05-27 00:32:00.5-07:00\nc = 1979-05-27T07:32:00\nd = "
       "2000-02-29\ne = "
       "07:32:00",
       R"({"a":"1979-05-27T07:32:00Z","b":"1979-05-27T00:32:00.5-07:00","c":"1979-05-27T07:32:00",)"
       R"("d":"2000-02-29","e":"07:32:00"})"},
      // arrays
      {"a = []\nb = [1, 2,]\nc = [\n  1, # one\n  2\n  , # two\n]", R"({"a":[],"b":[1,2],"c":[1,2]})"},
      {"a = [[1, 2], [\"x\"], {y = 1.5}]", R"({"a":[[1,2],["x"],{"y":1.5}]})"},
      {"a = [\"]\", ',', \"#\"]", R"({"a":["]",",","#"]})"},
      // tables
      {"[a]\n[a.b]\nc = 1\n[ d . 'e.f' ]\ng = 2", R"({"a":{"b":{"c":1}},"d":{"e.f":{"g":2}}})"},
      {"[a.b]\nc = 1\n[a]\nd = 2", R"({"a":{"b":{"c":1},"d":2}})"},
      {"[[a]]\nb = 1\n[[a]]\n[[a.c]]\nd = 2\n[[a.c]]\n[a.e]\nf = 3",
       R"({"a":[{"b":1},{"c":[{"d":2},{}],"e":{"f":3}}]})"},
      {"a = {b = 1, c.d = 2, e = {}}", R"({"a":{"b":1,"c":{"d":2},"e":{}}})"},
      {"fruit.apple.color = 1\n[fruit.pear]\nb = 2", R"({"fruit":{"apple":{"color":1},"pear":{"b":2}}})"},
      {"[table]\r\nkey = 1\r\n", R"({"table":{"key":1}})"},
      {"\xef\xbb\xbf"
       "a = 1",
       R"({"a":1})"},  // a byte order mark
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(as_json(c.text) == json::parse(c.expected));
  }
  const toml::table limits = parse_toml("a = inf\nb = -inf\nc = nan\nd = +nan\ne = +inf", "a.toml");
  CHECK(limits["a"].value<double>() == std::numeric_limits<double>::infinity());
  CHECK(limits["b"].value<double>() == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(*limits["c"].value<double>()));
}

TEST_CASE("S-CFG-01: invalid TOML is refused, with file and line") {
  const std::string cases[] = {
      // keys
      "= 1",
      "a",
      "a =",
      "a = ",
      "a b = 1",
      "a = 1 b = 2",
      "a. = 1",
      ".a = 1",
      "a..b = 1",
      "a = 1\na = 2",
      "a.b = 1\na = 2",
      "a = 1\na.b = 2",
      "\"a = 1",
      "'''a''' = 1",
      "\"\"\"a\"\"\" = 1",
      "a\n= 1",
      "\xc3\xa9 = 1",
      "a = 1\n\"a\" = 2",
      "a! = 1",
      "[a]\nb = 1\nb = 2",
      "a#b = 1",
      "\"\\q\" = 1",
      // strings
      "a = \"",
      "a = 'b",
      "a = \"b\nc\"",
      "a = 'b\nc'",
      "a = \"\\x\"",
      "a = \"\\u12\"",
      "a = \"\\ud800\"",
      "a = \"\\U00110000\"",
      "a = \"\x01\"",
      "a = '\x7f'",
      "a = \"\"\"b\"\"",
      "a = '''b''",
      "a = \"b\" c",
      "a = b",
      "a = \"\"\"b\"\"\"\"\"\"",
      "a = '''b''''''",
      "a = \"\"\"\\q\"\"\"",
      "a = \"\xff\"",
      "a = \"\xc0\xaf\"",
      "# \x01",
      "# \xff",
      "a = \"\xed\xa0\x80\"",
      // numbers
      "a = 01",
      "a = +01",
      "a = 1__0",
      "a = _1",
      "a = 1_",
      "a = 0x",
      "a = 0xg",
      "a = 0o8",
      "a = 0b2",
      "a = +0x1",
      "a = 0X1",
      "a = 0x_1",
      "a = ++1",
      "a = 1.",
      "a = .1",
      "a = 1.e2",
      "a = 1._2",
      "a = 1_.2",
      "a = 1e",
      "a = 1e_2",
      "a = 1.2.3",
      "a = 03.14",
      "a = Inf",
      "a = NaN",
      "a = infinity",
      "a = 9223372036854775808",
      "a = -9223372036854775809",
      "a = 1 000",
      // booleans, dates
      "a = True",
      "a = FALSE",
      "a = tru",
      "a = 2021-13-01",
      "a = 2021-02-30",
      "a = 2021-1-1",
      "a = 21-01-01",
      "a = 2021-01-01T25:00:00",
      "a = 2021-01-01T00:60:00",
      "a = 7:00:00",
      "a = 2021-01-01T",
      "a = 2001-02-29",
      "a = 2021-01-01T00:00:00+25:00",
      "a = 2021-01-01x00:00:00",
      "a = 2021-01-01T00:00:00.",
      // arrays and inline tables
      "a = [1, 2",
      "a = [1 2]",
      "a = [,]",
      "a = [1,,2]",
      "a = ]",
      "a = [1] 2",
      "a = {b = 1,}",
      "a = {b = 1",
      "a = {b = 1\n}",
      "a = {b = 1, b = 2}",
      "a = {b}",
      "a = {,}",
      "a = {b = 1}\na.c = 2",
      "a = {b = 1}\n[a.c]",
      "a = {b = {c = 1}, b.d = 2}",
      "a = {b = 1 c = 2}",
      "a = [{}]\n[[a]]",
      // tables
      "[]",
      "[a",
      "[a]]",
      "[[a]",
      "[[]]",
      "[a.]",
      "[.a]",
      "[a] b = 1",
      "[a]\n[a]",
      "[a b]",
      "[a]\nb = 1\n[a.b]",
      "[[a]]\n[a]",
      "[a]\n[[a]]",
      "a = []\n[[a]]",
      "a = 1\n[a]",
      "[a.b]\n[a]\nb = 1",
      "[ [a]]",
      "[\"a]",
      "[a\n]",
      "[a]\nb.c = 1\n[a.b]",
      "a.b = 1\n[a]",
  };
  for (const std::string& text : cases) {
    CAPTURE(text);
    try {
      parse_toml(text, "a.toml");
      FAIL_CHECK("it was accepted");
    } catch (const HubError& error) {
      CHECK(error.kind == ErrorKind::usage);
      CHECK_THAT(error.what(), contains_text("a.toml:"));
    }
  }
  CHECK_THROWS_AS(parse_toml(std::string("a = \"\0\"", 7), "a.toml"), HubError);
}

TEST_CASE("S-CFG-02: files as kernels-community has them, and a large one within a second") {
  std::string text =
      "[general]\nname = \"flash-attn\"\nbackends = [\n  \"cuda\",\n  \"rocm\",\n]\n\n"
      "[general.hub]\nrepo-id = \"owner/flash-attn\"\n\n[torch]\nsrc = [\"torch-ext/binding.cpp\",]\n";
  json expected = {
      {"general",
       {{"name", "flash-attn"}, {"backends", {"cuda", "rocm"}}, {"hub", {{"repo-id", "owner/flash-attn"}}}}},
      {"torch", {{"src", {"torch-ext/binding.cpp"}}}}};
  for (int kernel = 0; text.size() < 560'000; ++kernel) {
    const std::string name = (kernel % 2 == 0 ? "moe-marlin-" : "_fp4attn_sm100_") + std::to_string(kernel);
    text += "\n[kernel." + name +
            "]\nbackend = \"cuda\"\ncuda-capabilities = [\"9.0a\", \"10.0+PTX\"]\nsrc = [\n";
    json& one = expected["kernel"][name];
    one = {{"backend", "cuda"}, {"cuda-capabilities", {"9.0a", "10.0+PTX"}}};
    for (int i = 0; i < 50; ++i) {
      const std::string file = "csrc/instances/fmha fwd_d" + std::to_string(i) + "=[" + name + "].cu";
      text += "  \"" + file + "\",\n";
      one["src"].push_back(file);
    }
    text += "]\n";
  }
  const std::clock_t begin = std::clock();  // of this process alone
  const toml::table table = parse_toml(text, "build.toml");
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < 1);
  std::ostringstream written;
  written << toml::json_formatter(table);
  CHECK(json::parse(written.str()) == expected);
}
