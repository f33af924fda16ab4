// The error of a system call on a file: which file, why, and what to do about it.
#pragma once

#include <filesystem>
#include <string>

namespace neuron_kernels::hub {

/// Whose folder it is: the hint names the setting that moves it.
enum class Storage { folder, cache };

/// Throws HubError "cannot ACTION PATH: REASON". error: an errno.
/// errors: storage, or not_found for a file that is not there (outside the cache, whose folders are its own)
[[noreturn]] void storage_error(const std::string& action, const std::filesystem::path& path, int error,
                                Storage storage = Storage::folder);

}  // namespace neuron_kernels::hub
