// Pages about the files of a repository at a revision: a folder, and one file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hub/registry/git_repository.hpp"
#include "hub/registry/web_layout.hpp"

namespace neuron_kernels::hub::registry {

struct FolderView {
  RepositoryKey key;
  std::string revision, folder;  // folder: "" is the root
  Paging paging;
  std::vector<TreeEntry> entries;  // of this page
};

struct FileView {
  RepositoryKey key;
  std::string revision;
  TreeEntry file;
  std::optional<std::string> text;  // the content, if it is text that is short enough to show
};

/// Folders before files.
void sort_for_view(std::vector<TreeEntry>& entries);
/// A table of names, sizes and links to download.
Html folder_table(const FolderView& view);
Page folder_page(const FolderView& view);
Page file_page(const FileView& view);

}  // namespace neuron_kernels::hub::registry
