// Which files of a package's folder go into what is published, and copying them there.
//
// Left out: names that begin with '.' (.git, .env), and products of builds (*.o, *.a, *.so, *.pyc,
// __pycache__,
// *.egg-info). .gitignore is not read. Links are errors: they may lead out of the folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace neuron_kernels::hub {

/// Files below root/folder by path relative to it, sorted. Errors: HubError usage for a link or anything that
/// is neither file nor folder; not_found; storage if a folder cannot be read.
std::vector<std::string> published_files(const std::filesystem::path& root, const std::string& folder);

/// Copies them below `dst`. Errors: as above; storage for a file that cannot be read.
void stage_folder(const std::filesystem::path& root, const std::string& folder,
                  const std::filesystem::path& dst);

/// The files that patterns name, relative to `root`, sorted; '*' in the last part of a path stands for any
/// text. errors: HubError usage for a pattern that names no file
std::vector<std::string> matching_files(const std::filesystem::path& root,
                                        const std::vector<std::string>& patterns);

}  // namespace neuron_kernels::hub
