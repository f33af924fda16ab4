// The body of a commit in any cuts of its stream: lines, and the content of files on its own way.
#include <string>
#include <vector>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/registry/ndjson.hpp"

namespace hub = neuron_kernels::hub;

namespace {

struct Read {
  std::vector<std::string> lines;
  std::vector<bool> had_content;
  std::vector<std::string> contents;  // one per line that has content
};

/// Reads `text` in pieces of `step` bytes.
Read read(const std::string& text, std::size_t step) {
  Read result;
  std::string content;
  hub::registry::NdjsonReader reader(
      {[&](hub::Bytes data) { content.append(reinterpret_cast<const char*>(data.data()), data.size()); },
       [&](const std::string& line, bool had_content) {
         result.lines.push_back(line);
         result.had_content.push_back(had_content);
         if (had_content) result.contents.push_back(content);
         content.clear();
       }});
  for (std::size_t i = 0; i < text.size(); i += step)
    reader.add(hub::bytes_of(text).subspan(i, std::min(step, text.size() - i)));
  reader.finish();
  return result;
}

}  // namespace

TEST_CASE("lines and contents are the same whatever pieces the stream comes in") {
  const std::string big(200'000, 'x');
  const std::string text = R"({"key":"header","value":{"summary":"say \"content\": hi","description":"a:b"}})"
                           "\n" +
                           (R"({"key": "file", "value": {"content": ")" + hub::to_base64(big)) +
                           R"(", "path": "a/content", "encoding": "base64"}})"
                           "\n\n" +
                           R"({"key":"file","value":{"path":"b","content":"","encoding":"base64"}})";
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, text.size()}) {
    const Read got = read(text, step);
    REQUIRE(got.lines.size() == 3);
    CHECK(got.lines[0] ==
          R"({"key":"header","value":{"summary":"say \"content\": hi","description":"a:b"}})");
    CHECK(got.lines[1] ==
          R"({"key": "file", "value": {"content": "", "path": "a/content", "encoding": "base64"}})");
    CHECK(got.had_content == std::vector<bool>{false, true, true});
    REQUIRE(got.contents.size() == 2);
    CHECK(got.contents[0] == big);
    CHECK(got.contents[1].empty());
  }
}

TEST_CASE("only the value of a key named content is content") {
  const Read got = read(R"({"a":"content","b":["content","x"],"contents":"y","c":{"d":"content"}})", 3);
  REQUIRE(got.lines.size() == 1);
  CHECK(got.lines[0] == R"({"a":"content","b":["content","x"],"contents":"y","c":{"d":"content"}})");
  CHECK_FALSE(got.had_content[0]);
}

TEST_CASE("what is no commit is refused with its reason") {
  CHECK_THROWS_WITH(read(R"({"content":"not base64!"})"
                         "\n",
                         5),
                    contains_text("base64"));
  CHECK_THROWS_WITH(read(R"({"content":"a\u0041"})"
                         "\n",
                         5),
                    contains_text("escape"));
  CHECK_THROWS_WITH(read(R"({"content":"aGk=)", 5), contains_text("ends within a line"));
  CHECK_THROWS_WITH(read("{\"a\":\"" + std::string(2 << 20, 'x'), 4096), contains_text("longer than 1 MiB"));
}
