// Markup: whatever the values are, they stay text, and addresses stay addresses of this server.
#include <string>

#include "catch.hpp"
#include "hub/registry/html.hpp"
#include "hub/registry/utf8.hpp"

using namespace neuron_kernels::hub::registry;

namespace {
std::string escaped(std::string_view text) { return html("{}", text).markup(); }
const std::string replacement = "\xef\xbf\xbd";
}  // namespace

TEST_CASE("every character of markup is escaped, in texts and in attributes") {
  const std::string hostile = "<script>'\"&</script>";
  const std::string text = "&lt;script&gt;&#39;&quot;&amp;&lt;/script&gt;";
  CHECK(escaped(hostile) == text);
  CHECK(html("<b title=\"{}\">{}</b>", hostile, hostile).markup() ==
        "<b title=\"" + text + "\">" + text + "</b>");
  CHECK(escaped("{} {}") == "{} {}");  // a value is no form
  CHECK(html("{}{}", 7, std::size_t{50}).markup() == "750");
}

TEST_CASE("markup is put in as it is, and only markup") {
  const Html bold = html("<b>{}</b>", "a<b");
  CHECK(html("<p>{}</p>", bold).markup() == "<p><b>a&lt;b</b></p>");
  CHECK(html("<p>{}</p>", bold.markup()).markup() == "<p>&lt;b&gt;a&amp;lt;b&lt;/b&gt;</p>");
}

TEST_CASE("what is no UTF-8, and control characters, become the replacement character") {
  CHECK(escaped("a\xff"
                "b") == "a" + replacement + "b");
  CHECK(escaped(std::string_view("\0\x1b\x7f", 3)) == replacement + replacement + replacement);
  CHECK(escaped("\xc0\xbc"
                "script") == replacement + replacement + "script");           // an overlong '<'
  CHECK(escaped("\xe2\x82") == replacement + replacement);                    // cut off
  CHECK(escaped("\xed\xa0\x80") == replacement + replacement + replacement);  // half of a surrogate pair
  CHECK(escaped("tab\tline\n\xe2\x82\xac \xf0\x9f\x98\x80") == "tab\tline\n\xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST_CASE("the length of a character is known, or that it is none") {
  CHECK(utf8_length("ab") == 1);
  CHECK(utf8_length("\xe2\x82\xac!") == 3);
  CHECK(utf8_length("\xf4\x90\x80\x80") == 0);  // beyond U+10FFFF
  CHECK(utf8_length("\x80") == 0);
  CHECK(utf8_length("") == 0);
  CHECK(is_utf8(""));
  CHECK_FALSE(is_utf8("ok\xc3"));
}

TEST_CASE("addresses begin with one slash and hold no part that could leave its place") {
  CHECK(Address().text() == "/");
  CHECK(Address::of({"kernels", "a", "b"}).text() == "/kernels/a/b");
  CHECK((Address::of({"a"}) / "v1/x?#%").text() == "/a/v1%2Fx%3F%23%25");
  CHECK(Address::of({"javascript:alert(1)"}).text() == "/javascript%3Aalert%281%29");
  CHECK(Address::of({"/evil.example"}).text() == "/%2Fevil.example");  // not "//evil.example"
  CHECK(Address::of({"a"}).below("b/c d").text() == "/a/b/c%20d");
  CHECK(Address::of({"a"}).below("").text() == "/a");
  CHECK(Address().with({{"search", ""}, {"page", "2"}, {"x", "&=\""}}).text() == "/?page=2&x=%26%3D%22");
  CHECK(html("<a href=\"{}\">", Address().with({{"a", "1"}, {"b", "2"}})).markup() ==
        "<a href=\"/?a=1&amp;b=2\">");
}
