#include "hub/partial.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "hub/digest.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view incomplete = ".incomplete";
constexpr std::time_t silent_s = 600;  // longer than any time-out of a client that still runs

std::string small_file(const char* path) {
  try {
    return read_file(path);
  } catch (const std::exception&) {
    return {};
  }
}

/// Field 22 of /proc/PID/stat: when it was started. Empty if there is no such process.
std::string start_of(const std::string& pid) {
  const std::string status = small_file(("/proc/" + pid + "/stat").c_str());
  std::size_t at = status.rfind(')');  // the name before it may hold anything
  if (at == status.npos) return {};
  for (int field = 2; field < 22 && at != status.npos; ++field) at = status.find(' ', at + 1);
  if (at == status.npos) return {};
  return status.substr(at + 1, status.find(' ', at + 1) - at - 1);
}

const std::string& host_mark() {
  static const std::string mark = [] {
    char space[64] = "";
    const ssize_t n = ::readlink("/proc/self/ns/pid", space, sizeof space - 1);
    return sha256_hex(small_file("/proc/sys/kernel/random/boot_id") +
                      std::string(space, n > 0 ? static_cast<std::size_t>(n) : 0))
        .substr(0, 8);
  }();
  return mark;
}

struct Mark {
  std::string host, pid, start;
};

/// "<8 hex>-<digits>-<digits>"
std::optional<Mark> parse_mark(std::string_view text) {
  const std::size_t first = text.find('-'), second = text.find('-', first + 1);
  if (first != 8 || second == text.npos || !is_hex(text.substr(0, 8), 8)) return {};
  const std::string_view pid = text.substr(9, second - 9), start = text.substr(second + 1);
  constexpr std::string_view digits = "0123456789";
  if (pid.empty() || start.empty() || pid.find_first_not_of(digits) != pid.npos ||
      start.find_first_not_of(digits) != start.npos) {
    return {};
  }
  return Mark{std::string(text.substr(0, 8)), std::string(pid), std::string(start)};
}

bool is_digest(std::string_view text) { return is_hex(text, 40) || is_hex(text, 64); }

}  // namespace

const std::string& process_mark() {
  static const std::string mark = [] {
    const std::string pid = std::to_string(::getpid());
    const std::string start = start_of("self");
    return host_mark() + "-" + pid + "-" + (start.empty() ? "0" : start);
  }();
  return mark;
}

std::string partial_name(const std::string& blob) {
  return blob + "." + process_mark() + std::string(incomplete);
}

std::vector<Leftover> find_leftovers(const fs::path& blobs) {
  std::vector<Leftover> leftovers;
  std::error_code error;
  for (fs::directory_iterator entry(blobs, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (is_digest(name)) continue;
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    Leftover leftover{.path = entry->path(), .blob = {}, .size = static_cast<std::uint64_t>(status.st_size)};
    const bool silent = std::time(nullptr) - status.st_mtime > silent_s;
    const std::size_t dot = name.find('.');
    if (dot != name.npos && is_digest(std::string_view(name).substr(0, dot)))
      leftover.blob = name.substr(0, dot);
    if (leftover.blob.empty() || !name.ends_with(incomplete)) {
      const bool foreign = name.ends_with(incomplete) || name.ends_with(".part") || name.ends_with(".lock");
      if (foreign && silent) leftovers.push_back(std::move(leftover));
      continue;
    }
    const std::string_view middle = std::string_view(name).substr(
        dot + 1, name.size() - std::min(name.size(), dot + 1 + incomplete.size()));
    const auto mark = parse_mark(middle);
    if (mark && mark->host == host_mark()) {
      const bool own = middle == process_mark();
      if (!own && start_of(mark->pid) == mark->start) continue;  // alive
      leftover.resumable = true;
    } else if (!silent) {
      continue;
    } else {
      leftover.resumable = mark.has_value();
    }
    leftovers.push_back(std::move(leftover));
  }
  return leftovers;
}

bool claim(const Leftover& leftover, const fs::path& partial) {
  return leftover.path == partial || ::rename(leftover.path.c_str(), partial.c_str()) == 0;
}

}  // namespace neuron_kernels::hub
