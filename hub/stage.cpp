#include "hub/stage.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "hub/error.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

bool is_left_out(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.starts_with('.') || name == "__pycache__") return true;
  static const std::set<std::string> products{".o", ".obj", ".a", ".so", ".pyc", ".egg-info"};
  return products.contains(path.extension().string());
}

void require_plain(const fs::directory_entry& entry) {
  if (entry.is_symlink()) {
    throw HubError(ErrorKind::usage, entry.path().string() + " is a link; allowed are files and folders",
                   "put the file itself there, or remove the link");
  }
  if (!entry.is_regular_file() && !entry.is_directory()) {
    throw HubError(ErrorKind::usage, entry.path().string() + " is neither a file nor a folder", "remove it");
  }
}

void collect(const fs::path& folder, const fs::path& base, std::vector<std::string>& files) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) {
    throw HubError(error == std::errc::no_such_file_or_directory ? ErrorKind::not_found : ErrorKind::storage,
                   "cannot read folder " + folder.string() + ": " + error.message(),
                   "check the path in kernel.toml");
  }
  for (const fs::directory_entry& entry : entries) {
    if (is_left_out(entry.path())) continue;
    require_plain(entry);
    if (entry.is_directory()) {
      collect(entry.path(), base, files);
      continue;
    }
    files.push_back(entry.path().lexically_relative(base).generic_string());
    require_safe_path(files.back(), folder.string());
  }
}

}  // namespace

std::vector<std::string> published_files(const fs::path& root, const std::string& folder) {
  std::vector<std::string> files;
  collect(root / folder, root / folder, files);
  std::sort(files.begin(), files.end());
  return files;
}

void stage_folder(const fs::path& root, const std::string& folder, const fs::path& dst) {
  for (const std::string& file : published_files(root, folder)) {
    make_folders((dst / file).parent_path());
    std::error_code error;
    fs::copy_file(root / folder / file, dst / file, error);
    if (error) {
      throw HubError(ErrorKind::storage,
                     "cannot copy " + (root / folder / file).string() + ": " + error.message());
    }
  }
}

std::vector<std::string> matching_files(const fs::path& root, const std::vector<std::string>& patterns) {
  std::set<std::string> files;
  for (const std::string& pattern : patterns) {
    const fs::path path(pattern);
    const std::size_t before = files.size();
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(root / path.parent_path(), error)) {
      const std::string name = entry.path().filename().string();
      if (::fnmatch(path.filename().c_str(), name.c_str(), FNM_PERIOD | FNM_NOESCAPE) != 0) continue;
      require_plain(entry);
      if (entry.is_regular_file()) files.insert((path.parent_path() / name).generic_string());
    }
    if (files.size() == before) {
      throw HubError(ErrorKind::usage, "no file matches '" + pattern + "' in " + root.string(),
                     "correct the sources in kernel.toml");
    }
  }
  return {files.begin(), files.end()};
}

}  // namespace neuron_kernels::hub
