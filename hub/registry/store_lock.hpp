// A lock on all that a registry stores, between the server and the housekeeping of other processes.
//
// shared: what adds to the store (uploads, commits, references). exclusive: what takes from it or renames in
// it. A thread that holds one must not ask for another: who waits to have it exclusively holds up new sharers.
#pragma once

#include <filesystem>
#include <string>

#include "hub/files.hpp"

namespace neuron_kernels::hub::registry {

class StoreLock {
 public:
  // Errors: HubError storage.
  static StoreLock shared(const std::filesystem::path& root) { return {root, Mode::shared}; }
  static StoreLock exclusive(const std::filesystem::path& root) { return {root, Mode::exclusive}; }

  /// From exclusive to shared, with nobody in between.
  void share();

 private:
  enum class Mode { shared, exclusive };
  StoreLock(const std::filesystem::path& root, Mode mode);
  Descriptor file_;
};

/// A lock file for this process alone. Errors: HubError conflict `busy`, with `hint`, if another one has it.
Descriptor lock_or_conflict(const std::filesystem::path& file, const std::string& busy,
                            const std::string& hint);

}  // namespace neuron_kernels::hub::registry
