// The body of a commit: read in pieces of any size from any offset, it is the same text.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "hub/digest.hpp"
#include "hub/files.hpp"
#include "hub/ndjson_body.hpp"
#include "temporary_folder.hpp"

using namespace neuron_kernels::hub;

namespace {

std::string read_all(const Body& body, std::size_t piece) {
  std::string text;
  std::vector<std::byte> buffer(piece);
  while (text.size() < body.size) {
    const std::size_t n = body.read(text.size(), buffer);
    REQUIRE(n > 0);
    text.append(reinterpret_cast<const char*>(buffer.data()), n);
  }
  CHECK(body.read(text.size(), buffer) == 0);
  return text;
}

}  // namespace

TEST_CASE("a commit's body has each line and each file, however it is read") {
  const test::TemporaryFolder folder;
  std::mt19937 source(9);
  std::vector<LocalFile> files;
  for (const std::size_t size : {0, 1, 2, 3, 4, 100, 1000, 70001}) {
    std::string content(size, '\0');
    for (char& c : content) c = static_cast<char>(source());
    const std::string name = "f" + std::to_string(size) + "\"\xc3\xa9";
    if (size % 2 == 0) {
      files.push_back(LocalFile::in_memory(name, content));
    } else {
      write_file(folder.path() / name, content);
      files.push_back(LocalFile::on_disk(name, folder.path() / name));
    }
    CHECK(files.back().sha256 == sha256_hex(content));
    CHECK(files.back().read(0, size) == content);
  }
  NdjsonBody lines;
  lines.add({{"key", "header"}, {"value", {{"summary", "two\nlines"}}}});
  for (const LocalFile& file : files) lines.add_file(file);
  const Body body = lines.body();
  CHECK(body.type == "application/x-ndjson");
  const std::string whole = read_all(body, 1 << 20);
  for (const std::size_t piece : {1, 2, 3, 5, 7, 64, 4096}) CHECK((read_all(body, piece) == whole));
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> buffer(1 + source() % 5000);
    const std::size_t offset = source() % whole.size();
    const std::size_t n = body.read(offset, buffer);
    CHECK(whole.compare(offset, n, reinterpret_cast<const char*>(buffer.data()), n) == 0);
  }

  std::size_t at = 0, count = 0;
  while (at < whole.size()) {
    const std::size_t end = whole.find('\n', at);
    REQUIRE(end != whole.npos);
    const auto line = nlohmann::json::parse(whole.substr(at, end - at));
    if (count > 0) {
      const LocalFile& file = files[count - 1];
      CHECK(line["key"] == "file");
      CHECK(line["value"]["path"] == file.path);
      CHECK((from_base64(line["value"]["content"].get<std::string>()) == file.read(0, file.size)));
    }
    at = end + 1;
    ++count;
  }
  CHECK(count == files.size() + 1);
}
