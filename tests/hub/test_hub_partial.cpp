// Which partial files are taken over, left alone, or cleaned.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "catch.hpp"
#include "hub/partial.hpp"
#include "temporary_folder.hpp"

namespace hub = neuron_kernels::hub;
namespace fs = std::filesystem;

namespace {

const std::string blob(40, 'a');

void make(const fs::path& path, bool old = false) {
  std::ofstream(path) << "half";
  if (old) fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
}

std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> found;
  for (const hub::Leftover& leftover : hub::find_leftovers(folder))
    found.push_back(leftover.path.filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

/// The mark of a process that has ended.
std::string dead_mark() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  const std::string& own = hub::process_mark();
  const std::size_t first = own.find('-'), second = own.find('-', first + 1);
  return own.substr(0, first + 1) + std::to_string(child) + own.substr(second);
}

}  // namespace

TEST_CASE("a leftover of a dead process is taken over at once") {
  const test::TemporaryFolder folder;
  const std::string name = blob + "." + dead_mark() + ".incomplete";
  make(folder.path() / name);
  const auto leftovers = hub::find_leftovers(folder.path());
  REQUIRE(leftovers.size() == 1);
  CHECK(leftovers[0].blob == blob);
  CHECK(leftovers[0].size == 4);
  CHECK(leftovers[0].resumable);
  const fs::path partial = folder.path() / hub::partial_name(blob);
  CHECK(hub::claim(leftovers[0], partial));
  CHECK(fs::exists(partial));
  CHECK_FALSE(hub::claim(leftovers[0], partial));  // it is gone
}

TEST_CASE("what lives or may live is left alone") {
  const test::TemporaryFolder folder;
  make(folder.path() / (blob + ".01234567-1-1.incomplete"));  // of another machine, written just now
  make(folder.path() / (blob + ".0a1b2c3d.incomplete"));      // of Python, written just now
  make(folder.path() / blob, true);                           // a blob
  make(folder.path() / "notes.txt", true);
  CHECK(names(folder.path()).empty());
}

TEST_CASE("old leftovers of others are cleaned, those with our kind of name resumed") {
  const test::TemporaryFolder folder;
  for (const char* end : {".0a1b2c3d.incomplete", ".sync.part", ".lock", ".01234567-1-1.incomplete"}) {
    make(folder.path() / (blob + end), true);
  }
  CHECK(names(folder.path()).size() == 4);
  for (const hub::Leftover& leftover : hub::find_leftovers(folder.path())) {
    CHECK(leftover.resumable == (leftover.path.filename().string() == blob + ".01234567-1-1.incomplete"));
  }
}
