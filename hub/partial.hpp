// Names of files that are being downloaded: the name says which process writes it, so that a later one can
// tell a leftover of a dead process, take it over and go on where it ended. No lock is needed for that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace neuron_kernels::hub {

/// The mark of this process, "<host>-<pid>-<start>": host from boot id and pid namespace, start in clock
/// ticks since boot. No other process, alive or dead, has the same since the machine was started.
const std::string& process_mark();

/// "<blob>.<mark>.incomplete": what this process writes `blob` to.
std::string partial_name(const std::string& blob);

struct Leftover {
  std::filesystem::path path;
  std::string blob;  // empty if the name does not tell
  std::uint64_t size = 0;
  bool resumable = false;  // written from its start on by a process of ours that is dead
};

/// What other programs and dead processes left in a folder of blobs: partial files and locks. Those whose
/// process is alive, or was on another machine and wrote in the last ten minutes, are not listed.
std::vector<Leftover> find_leftovers(const std::filesystem::path& blobs);

/// Renames the leftover to partial_name(); false if another process was faster.
bool claim(const Leftover& leftover, const std::filesystem::path& partial);

}  // namespace neuron_kernels::hub
