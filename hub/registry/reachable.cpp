#include "hub/registry/reachable.hpp"

#include <filesystem>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/registry/git_repository.hpp"
#include "hub/registry/libgit2.hpp"

namespace neuron_kernels::hub::registry {

namespace {

namespace fs = std::filesystem;
using namespace libgit2;

[[noreturn]] void missing(const char* kind, const git_oid& id) {
  throw HubError(ErrorKind::integrity, std::string("the ") + kind + " " + text_of(id) + " is missing");
}

/// libgit2 passes over a reference whose file it cannot read; to take what it leads to for garbage would be
/// worse than to stop.
void require_whole_references(const fs::path& repository) {
  for (const auto& entry : fs::recursive_directory_iterator(repository / "refs")) {
    if (!entry.is_regular_file() || entry.path().extension() == ".lock") continue;
    std::string text;
    try {
      text = read_file(entry.path());
    } catch (const HubError& error) {
      if (error.kind == ErrorKind::not_found) continue;  // deleted just now
      throw;
    }
    const bool whole = text.starts_with("ref: ") || (text.size() >= 40 && is_hex(text.substr(0, 40), 40));
    if (whole) continue;
    throw HubError(ErrorKind::integrity,
                   "the reference " + entry.path().string() + " holds no commit and is damaged",
                   "write the id of a commit into it, or delete it");
  }
}

/// What HEAD and all references name.
std::vector<git_oid> tips_of(git_repository* repository) {
  require_whole_references(git_repository_path(repository));
  std::vector<git_oid> found;
  git_oid head;
  if (git_reference_name_to_id(&head, repository, "HEAD") == 0) found.push_back(head);
  const RefIterator iterator = made<RefIterator>("list references", [&](git_reference_iterator** i) {
    return git_reference_iterator_new(i, repository);
  });
  git_reference* raw = nullptr;
  int result = 0;
  while ((result = git_reference_next(&raw, iterator.get())) == 0) {
    const Ref reference(raw);
    if (const git_oid* id = git_reference_target(raw)) found.push_back(*id);  // not of a symbolic one
  }
  if (result != GIT_ITEROVER) check(result, "list references");
  return found;
}

}  // namespace

void Reachable::extend(git_repository* repository) { walk(repository, tips_of(repository)); }

void Reachable::walk(git_repository* repository, const std::vector<git_oid>& tips) {
  const Odb odb = objects_of(repository);
  std::vector<Step> open;
  for (const git_oid& tip : tips) {
    std::size_t size = 0;
    git_object_t type = GIT_OBJECT_INVALID;
    const int result = git_odb_read_header(&size, &type, odb.get(), &tip);
    if (result == GIT_ENOTFOUND) missing("tip of a reference", tip);
    check(result, "read an object");
    open.push_back({tip, type});
  }
  while (!open.empty()) {
    const Step step = open.back();
    open.pop_back();
    if (objects_.contains(step.id)) continue;
    if (step.type == GIT_OBJECT_COMMIT) visit_commit(repository, step.id, open);
    if (step.type == GIT_OBJECT_TREE) visit_tree(repository, step.id, open);
    if (step.type == GIT_OBJECT_BLOB) visit_blob(odb.get(), step.id);
    if (step.type == GIT_OBJECT_TAG) {
      const auto tag =
          made<Tag>("read a tag", [&](git_tag** t) { return git_tag_lookup(t, repository, &step.id); });
      if (tag == nullptr) missing("tag", step.id);
      open.push_back({*git_tag_target_id(tag.get()), git_tag_target_type(tag.get())});
    }
    objects_.insert(step.id);
  }
}

void Reachable::visit_commit(git_repository* repository, const git_oid& id, std::vector<Step>& open) {
  const auto commit =
      made<Commit>("read a commit", [&](git_commit** c) { return git_commit_lookup(c, repository, &id); });
  if (commit == nullptr) missing("commit", id);
  open.push_back({*git_commit_tree_id(commit.get()), GIT_OBJECT_TREE});
  for (unsigned i = 0; i < git_commit_parentcount(commit.get()); ++i) {
    open.push_back({*git_commit_parent_id(commit.get(), i), GIT_OBJECT_COMMIT});
  }
}

void Reachable::visit_tree(git_repository* repository, const git_oid& id, std::vector<Step>& open) {
  const auto tree =
      made<Tree>("read a tree", [&](git_tree** t) { return git_tree_lookup(t, repository, &id); });
  if (tree == nullptr) missing("tree", id);
  for (std::size_t i = 0; i < git_tree_entrycount(tree.get()); ++i) {
    const git_tree_entry* entry = git_tree_entry_byindex(tree.get(), i);
    const git_object_t type = git_tree_entry_type(entry);
    if (type == GIT_OBJECT_COMMIT) continue;  // a submodule: it lives elsewhere
    open.push_back({*git_tree_entry_id(entry), type});
  }
}

void Reachable::visit_blob(git_odb* odb, const git_oid& id) {
  std::size_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;
  const int found = git_odb_read_header(&size, &type, odb, &id);
  if (found == GIT_ENOTFOUND) missing("blob", id);
  check(found, "read a blob");
  if (blobs_ == Blobs::pointers && size > LfsPointer::most_bytes) return;
  const auto blob =
      made<OdbObject>("read a blob", [&](git_odb_object** o) { return git_odb_read(o, odb, &id); });
  if (blob == nullptr) missing("blob", id);
  const std::string_view content(static_cast<const char*>(git_odb_object_data(blob.get())),
                                 git_odb_object_size(blob.get()));
  if (const auto pointer = LfsPointer::parse(content)) named_.insert(pointer->sha256);
}

}  // namespace neuron_kernels::hub::registry
