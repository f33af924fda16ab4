// Cards: what people write is shown, what could harm a reader is not, and hostile text ends in time.
#include <chrono>
#include <string>

#include "catch.hpp"
#include "hub/registry/markdown.hpp"
#include "markup_check.hpp"

using namespace neuron_kernels::hub::registry;

namespace {

std::string rendered(std::string_view card) {
  const std::string markup = read_card(card, Address::of({"kernels", "o", "n"})).body.markup();
  INFO(card.substr(0, 200));
  CHECK(test::forbidden_tag(markup) == "");
  return markup;
}

std::string repeated(const std::string& part, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += part;
  return text;
}

}  // namespace

TEST_CASE("a card is shown with its tables, code, lists and links") {
  const std::string markup = rendered(
      "# Title\n\n*a* **b** ~~c~~ `d` https://example.com\n\n| x | y |\n|---|--:|\n| 1 | 2 |\n\n"
      "- [x] done\n\n```cpp\nint a<b>;\n```\n");
  for (const char* part :
       {"<h2 id=\"card-title\">", "<em>a</em>", "<strong>b</strong>", "<del>c</del>", "<code>d</code>",
        "<a href=\"https://example.com\">", "<div class=\"scroll\" tabindex=\"0\">",
        "<td align=\"right\">2</td>", "checked=\"\"", "<code class=\"language-cpp\">int a&lt;b&gt;;"}) {
    CHECK_THAT(markup, contains_text(part));
  }
}

TEST_CASE("links lead to files of the repository, to headings of the card, and to the web") {
  CHECK_THAT(rendered("[a](docs/x.md#y)"), contains_text("href=\"/kernels/o/n/blob/main/docs/x.md#y\""));
  CHECK_THAT(rendered("[a](#some-part)"), contains_text("href=\"#card-some-part\""));
  CHECK_THAT(rendered("## Some Part: `x_y`"), contains_text("id=\"card-some-part-x_y\""));
  CHECK_THAT(rendered("[a](mailto:a@example.com)"), contains_text("href=\"mailto:a@example.com\""));
  CHECK_THAT(rendered("![a](p.png)"),
             contains_text("<img src=\"/kernels/o/n/resolve/main/p.png\" alt=\"a\""));
}

TEST_CASE("pictures from elsewhere become links, or words inside of a link") {
  CHECK(rendered("![a b](https://x.example/p.png)") ==
        "<p><a href=\"https://x.example/p.png\">a b</a></p>\n");
  CHECK(rendered("[![a](https://x.example/p.png)](https://y.example)") ==
        "<p><a href=\"https://y.example\">a</a></p>\n");
  CHECK(rendered("![a](//x.example/p.png)").find("<img") == std::string::npos);
  CHECK(rendered("![a](/metrics)") == "<p>a</p>\n");
  CHECK(rendered("![a](data:image/png;base64,AAAA)") == "<p>a</p>\n");
}

TEST_CASE("raw HTML is dropped") {
  CHECK(rendered("<script>alert(1)</script>") == "");
  CHECK(rendered("a<script>alert(1)</script>b") == "<p>aalert(1)b</p>\n");
  CHECK(rendered("<img src=x onerror=alert(1)>") == "");
  CHECK(rendered("a <b onclick=\"x\">c</b> <!-- d --> e") == "<p>a c  e</p>\n");
  for (const char* text :
       {"<div onload=x>\n\n*a*\n\n</div>", "<iframe src=x>", "<svg/onload=alert(1)>", "<style>*{}</style>",
        "<a href=\"javascript:x\">a</a>", "<!--><script>alert(1)</script>", "<![CDATA[<script>]]>",
        "<?php x ?>", "| a |\n|---|\n| <script>x</script> |", "# <img src=x onerror=y>", "~~<b>~~",
        "[<b onclick=x>](y)"}) {
    rendered(text);
  }
}

TEST_CASE("links that run something are taken away, their words stay") {
  for (const char* url : {"javascript:alert(1)", "JaVaScRiPt:alert(1)", "&#106;avascript:alert(1)",
                          "javascript&colon;alert(1)", "<java\tscript:alert(1)>", "<&#1;javascript:alert(1)>",
                          "vbscript:x", "data:text/html,<script>x</script>", "data:image/svg+xml;base64,AAAA",
                          "file:///etc/passwd", "blob:https://x.example/1", "x-custom:1"}) {
    INFO(url);
    const std::string markup = rendered("[words](" + std::string(url) + ")");
    CHECK_THAT(markup, contains_text("words"));
    CHECK(markup.find("href") == std::string::npos);
  }
  CHECK(rendered("<javascript:alert(1)>") == "<p>javascript:alert(1)</p>\n");
  CHECK(rendered("[a]\n\n[a]: javascript:alert(1)") == "<p>a</p>\n");
}

TEST_CASE("attributes cannot be left by what they hold") {
  for (const char* text : {"[a](x \"t\\\" onmouseover=alert(1) \\\"\")", "![a\" onerror=\"x](p.png)",
                           "```a\" onclick=\"x\nb\n```", "[a](<x\" onclick=\"y>)", "# a\" onclick=\"x",
                           "[a](https://x.example/\"onclick=\"y)", "https://x.example/\"><script>x</script>",
                           "![<script>x</script>](p.png)"}) {
    rendered(text);
  }
}

TEST_CASE("malformed UTF-8 and zero bytes are replaced") {
  CHECK(rendered("a\xff\xc3 b") == "<p>a\xef\xbf\xbd\xef\xbf\xbd b</p>\n");
  CHECK(rendered(std::string_view("a\0b", 3)) ==
        "<p>a\xef\xbf\xbd"
        "b</p>\n");
  rendered("# \xff\xfe heading");
}

TEST_CASE("hostile text ends in time and does not grow") {
  const std::size_t size = 5'000'000;
  const std::string blanks = repeated("\n", size);
  for (const std::string& card :
       {repeated("words *and* more words\n\n", size),
        repeated("> ", size),
        repeated("- ", 90'000) + "x" + blanks,
        "x\r" + repeated("- ", 60'000) + "x" + repeated("\r", size),
        repeated("- ", 180) + "x" + blanks,
        repeated("1. ", size),
        repeated("[", size),
        repeated("![[]()", size),
        repeated("![", size) + repeated("](x)", size),
        repeated("*a_ ", size),
        repeated("_", size),
        repeated("<![CDATA[", size),
        repeated("`a", size),
        repeated("www.a.b(", size),
        repeated("a@", size),
        "[a]: /" + repeated("x", 60'000) + "\n\n" + repeated("[a]", size),
        "[a]: /x \"" + repeated("y\r\n", 60'000) + "\"\r\n\r\n" + repeated("[a]", size),
        "|" + repeated("a|", 30'000) + "\n|" + repeated("-|", 30'000) + "\n" + repeated("|\n", size),
        repeated("![", 60'000) + repeated("](x)", 65'000),
        repeated("# a\n", size),
        repeated("|a|\n|-|\n", size)}) {
    INFO(card.substr(0, 40));
    const auto begin = std::chrono::steady_clock::now();
    const std::string markup = rendered(card);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    CHECK(seconds.count() < 20);  // below 1 s each where the machine has nothing else to do
    CHECK(markup.size() < 64 * Card::most_bytes);
  }
}

TEST_CASE("a long card is cut at the end of a line") {
  const Card card = read_card(repeated("a line\n\n", 5'000'000), Address::of({"o", "n"}));
  CHECK(card.cut);
  CHECK(card.body.markup().ends_with("<p>a line</p>\n"));
  CHECK_FALSE(read_card("short", Address()).cut);
}

TEST_CASE("the front matter is not text; licence and tags are read from it") {
  const Card card =
      read_card("---\nlicense: \"apache-2.0\" \ntags:\n- kernel\n  - 'a b'\nother:\n- x\n---\n# T\n",
                Address::of({"o", "n"}));
  CHECK(card.front.license == "apache-2.0");
  CHECK(card.front.tags == std::vector<std::string>{"kernel", "a b"});
  CHECK(card.body.markup().find("license") == std::string::npos);
  std::string_view text = "---\r\ntags: [x, \"y\", ]\r\nlicense:\r\n- mit\r\n- bsd\r\n---\r\nbody";
  const FrontMatter front = take_front_matter(text);
  CHECK(front.tags == std::vector<std::string>{"x", "y"});
  CHECK(front.license == "mit, bsd");
  CHECK(text == "body");
  for (std::string_view none : {"--- \nx", "---\nlicense: mit\n", "text\n---\nlicense: mit\n---\n", ""}) {
    std::string_view rest = none;
    CHECK(take_front_matter(rest).license.empty());
    CHECK(rest == none);
  }
}

TEST_CASE("the summary is the first paragraph in plain words") {
  CHECK(card_summary("---\ntags: x\n---\n# T\n\nA *b* `c`\n[d](e) <b>f</b>.\n\nmore") == "A b c d f.");
  CHECK(card_summary("# only a heading") == "");
  const std::string summary = card_summary(repeated("word ", 1000));
  CHECK(summary.size() < 210);
  CHECK(summary.ends_with("word …"));
}
