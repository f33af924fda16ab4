#include "hub/registry/git_repository.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <mutex>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/registry/http_server.hpp"
#include "hub/registry/lfs_attributes.hpp"
#include "hub/registry/libgit2.hpp"
#include "hub/registry/reachable.hpp"

namespace neuron_kernels::hub::registry {

namespace {

using namespace libgit2;

Signature signature(const std::string& author) {
  return made<Signature>("make a signature", [&](git_signature** s) {
    return git_signature_now(s, author.c_str(), (author + "@users.noreply").c_str());
  });
}

Commit lookup_commit(git_repository* repository, const std::string& id) {
  const git_oid oid = oid_of(id);
  return made<Commit>("read a commit",
                      [&](git_commit** c) { return git_commit_lookup(c, repository, &oid); });
}

Tree tree_of(git_repository* repository, const std::string& commit) {
  const Commit c = lookup_commit(repository, commit);
  if (c == nullptr) return Tree();
  return made<Tree>("read a tree", [&](git_tree** t) { return git_commit_tree(t, c.get()); });
}

CommitInfo info_of(const git_commit* commit) {
  CommitInfo info;
  info.id = text_of(*git_commit_id(commit));
  const char* title = git_commit_summary(const_cast<git_commit*>(commit));
  info.title = title != nullptr ? title : "";
  const char* body = git_commit_body(const_cast<git_commit*>(commit));
  info.message = body != nullptr ? body : "";
  info.author = git_commit_author(commit)->name;
  info.date = iso_date(git_commit_time(commit));
  return info;
}

}  // namespace

void GitRepository::create(const std::filesystem::path& folder, const std::string& author) {
  start();
  git_repository* repository = nullptr;
  git_repository_init_options options{};
  check(git_repository_init_options_init(&options, GIT_REPOSITORY_INIT_OPTIONS_VERSION),
        "create a repository");
  options.flags = GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKPATH | GIT_REPOSITORY_INIT_NO_REINIT;
  options.initial_head = "main";
  check(git_repository_init_ext(&repository, folder.c_str(), &options), "create a repository");
  git_repository_free(repository);
  GitRepository made_one(folder, {});
  made_one.create_reference("refs/heads/main", made_one.empty_commit(author));
}

GitRepository::GitRepository(const std::filesystem::path& folder, std::function<bool(const LfsPointer&)> owns,
                             KnownBlobs* known)
    : owns_(std::move(owns)), known_(known) {
  start();
  check(git_repository_open_bare(&repository_, folder.c_str()), "open a repository");
}

GitRepository::~GitRepository() { git_repository_free(repository_); }

std::vector<Reference> GitRepository::references(const std::string& prefix) const {
  const RefIterator iterator = made<RefIterator>("list references", [&](git_reference_iterator** i) {
    return git_reference_iterator_glob_new(i, repository_, (prefix + "*").c_str());
  });
  std::vector<Reference> found;
  git_reference* raw = nullptr;
  while (git_reference_next(&raw, iterator.get()) == 0) {
    const Ref ref(raw);
    const Object commit = made<Object>("read a reference", [&](git_object** o) {
      return git_reference_peel(o, ref.get(), GIT_OBJECT_COMMIT);
    });
    if (commit == nullptr) continue;
    const std::string name = std::string(git_reference_name(ref.get())).substr(prefix.size());
    found.push_back({name, text_of(*git_object_id(commit.get()))});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

std::optional<std::string> GitRepository::reference(const std::string& full_name) const {
  const Ref ref = made<Ref>("read a reference", [&](git_reference** r) {
    return git_reference_lookup(r, repository_, full_name.c_str());
  });
  if (ref == nullptr) return std::nullopt;
  const Object commit = made<Object>("read a reference", [&](git_object** o) {
    return git_reference_peel(o, ref.get(), GIT_OBJECT_COMMIT);
  });
  return commit != nullptr ? std::optional(text_of(*git_object_id(commit.get()))) : std::nullopt;
}

std::optional<std::string> GitRepository::resolve(const std::string& revision) const {
  if (revision.starts_with("refs/")) return reference(revision);
  for (const char* prefix : {"refs/heads/", "refs/tags/"}) {
    if (auto commit = reference(prefix + revision)) return commit;
  }
  if (revision.size() < 7 || revision.size() > 40 || !is_hex(revision, revision.size())) return std::nullopt;
  git_oid id;
  check(git_oid_fromstrn(&id, revision.c_str(), revision.size()), "read a commit id");
  const Object commit = made<Object>("find a commit", [&](git_object** o) {
    return git_object_lookup_prefix(o, repository_, &id, revision.size(), GIT_OBJECT_COMMIT);
  });
  return commit != nullptr ? std::optional(text_of(*git_object_id(commit.get()))) : std::nullopt;
}

namespace {

BlobFacts facts_of(git_repository* repository, const git_oid& id) {
  const Odb odb = objects_of(repository);
  std::size_t size = 0;
  git_object_t type = GIT_OBJECT_INVALID;
  check(git_odb_read_header(&size, &type, odb.get(), &id), "read an object");
  BlobFacts facts{size, std::nullopt};
  if (size > LfsPointer::most_bytes) return facts;
  if (const Blob blob = lookup_blob(repository, id))
    facts.pointer = LfsPointer::parse(content_of(blob.get()));
  return facts;
}

}  // namespace

std::optional<std::vector<TreeEntry>> GitRepository::list(const std::string& commit,
                                                          const std::string& folder, bool recursive) const {
  Tree root = tree_of(repository_, commit);
  if (root == nullptr) return std::nullopt;
  if (!folder.empty()) {
    const Entry e = made<Entry>("read a tree", [&](git_tree_entry** t) {
      return git_tree_entry_bypath(t, root.get(), folder.c_str());
    });
    if (e == nullptr || git_tree_entry_type(e.get()) != GIT_OBJECT_TREE) return std::nullopt;
    root = made<Tree>("read a tree", [&](git_tree** t) {
      return git_tree_lookup(t, repository_, git_tree_entry_id(e.get()));
    });
  }
  std::vector<TreeEntry> entries;
  const std::function<void(const git_tree*, const std::string&)> walk = [&](const git_tree* tree,
                                                                            const std::string& prefix) {
    for (std::size_t i = 0; i < git_tree_entrycount(tree); ++i) {
      const git_tree_entry* e = git_tree_entry_byindex(tree, i);
      entries.push_back(describe(e, prefix + git_tree_entry_name(e)));
      if (!recursive || !entries.back().folder) continue;
      const Tree below = made<Tree>(
          "read a tree", [&](git_tree** t) { return git_tree_lookup(t, repository_, git_tree_entry_id(e)); });
      walk(below.get(), entries.back().path + "/");
    }
  };
  walk(root.get(), folder.empty() ? "" : folder + "/");
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return entries;
}

std::optional<TreeEntry> GitRepository::entry(const std::string& commit, const std::string& path) const {
  const Tree root = tree_of(repository_, commit);
  if (root == nullptr || path.empty()) return std::nullopt;
  const Entry e = made<Entry>(
      "read a tree", [&](git_tree_entry** t) { return git_tree_entry_bypath(t, root.get(), path.c_str()); });
  if (e == nullptr) return std::nullopt;
  return describe(e.get(), path);
}

TreeEntry GitRepository::describe(const git_tree_entry* e, std::string path) const {
  TreeEntry entry;
  entry.path = std::move(path);
  entry.folder = git_tree_entry_type(e) == GIT_OBJECT_TREE;
  entry.oid = text_of(*git_tree_entry_id(e));
  if (entry.folder) return entry;
  auto facts = known_ != nullptr ? known_->find(entry.oid) : std::nullopt;
  if (!facts) {
    facts = facts_of(repository_, *git_tree_entry_id(e));
    if (known_ != nullptr) known_->keep(entry.oid, *facts);
  }
  entry.size = facts->size;
  if (!facts->pointer || !owns_ || !owns_(*facts->pointer)) return entry;
  entry.size = facts->pointer->size;
  entry.lfs = std::move(facts->pointer);
  return entry;
}

std::string GitRepository::blob(const std::string& oid) const {
  const git_oid id = oid_of(oid);
  const Blob blob = lookup_blob(repository_, id);
  if (blob == nullptr) throw HubError(ErrorKind::not_found, "no blob " + oid);
  return content_of(blob.get());
}

bool GitRepository::has(const std::string& oid) const {
  const Odb odb = objects_of(repository_);
  const git_oid id = oid_of(oid);
  return git_odb_exists(odb.get(), &id) == 1;
}

bool GitRepository::is_referenced(const std::string& commit) const {
  const git_oid id = oid_of(commit);
  std::vector<git_oid> tips;
  for (const Reference& reference : references("refs/")) tips.push_back(oid_of(reference.commit));
  const int result = git_graph_reachable_from_any(repository_, &id, tips.data(), tips.size());
  check(result, "read the history");
  return result == 1;
}

bool GitRepository::is_whole(const std::string& commit) const {
  if (is_referenced(commit)) return true;
  Reachable all;
  try {
    all.add(repository_, oid_of(commit));
  } catch (const HubError& error) {
    if (error.kind == ErrorKind::integrity) return false;
    throw;
  }
  return std::all_of(all.named().begin(), all.named().end(), [&](const std::string& sha256) {
    return owns_({sha256, 0});
  });
}

std::vector<CommitInfo> GitRepository::commits(const std::string& from, std::size_t skip, std::size_t most,
                                               std::size_t& total) const {
  const Walk walk =
      made<Walk>("read the history", [&](git_revwalk** w) { return git_revwalk_new(w, repository_); });
  git_revwalk_sorting(walk.get(), GIT_SORT_TOPOLOGICAL);
  const git_oid start = oid_of(from);
  check(git_revwalk_push(walk.get(), &start), "read the history");
  std::vector<CommitInfo> found;
  git_oid id;
  for (total = 0; git_revwalk_next(&id, walk.get()) == 0; ++total) {
    if (total >= skip && found.size() < most) found.push_back(commit_info(text_of(id)));
  }
  return found;
}

CommitInfo GitRepository::commit_info(const std::string& id) const {
  const Commit commit = lookup_commit(repository_, id);
  if (commit == nullptr) throw HubError(ErrorKind::not_found, "no commit " + id);
  return info_of(commit.get());
}

std::string GitRepository::write_blob(std::string_view content) {
  git_oid id;
  check(git_blob_create_from_buffer(&id, repository_, content.data(), content.size()), "write a blob");
  return text_of(id);
}

namespace {

/// The files of a commit, to be changed in memory.
Index index_of(git_repository* repository, const std::string& commit) {
  const Tree tree = tree_of(repository, commit);
  Index index = made<Index>("make an index", [&](git_index** i) { return git_index_new(i); });
  check(git_index_read_tree(index.get(), tree.get()), "read a tree");
  return index;
}

/// Errors: as GitRepository::commit
void apply(const Changes& changes, git_index* index) {
  for (const std::string& path : changes.deleted_files) {
    if (git_index_get_bypath(index, path.c_str(), 0) == nullptr) {
      throw HttpError{404, "there is no file '" + path + "' to delete", "EntryNotFound", {}};
    }
    check(git_index_remove(index, path.c_str(), 0), "delete a file");
  }
  for (const std::string& folder : changes.deleted_folders) {
    const std::size_t count = git_index_entrycount(index);
    check(git_index_remove_directory(index, folder.c_str(), 0), "delete a folder");
    if (git_index_entrycount(index) == count) {
      throw HttpError{404, "there is no folder '" + folder + "' to delete", "EntryNotFound", {}};
    }
  }
  for (const auto& [path, blob] : changes.files) {
    git_index_entry entry{};
    entry.mode = GIT_FILEMODE_BLOB;
    entry.id = oid_of(blob);
    entry.path = path.c_str();
    if (git_index_add(index, &entry) < 0) {
      throw HttpError{400, "'" + path + "' cannot be added: " + last_error(), {}, {}};
    }
  }
}

}  // namespace

std::set<std::string> GitRepository::lfs_paths(const std::string& commit,
                                               const std::vector<std::string>& paths) const {
  return registry::lfs_paths(repository_, index_of(repository_, commit).get(), paths);
}

std::optional<std::string> GitRepository::commit(const std::string& full_name, const std::string& parent,
                                                 const Changes& changes, const std::string& title,
                                                 const std::string& description, const std::string& author,
                                                 bool make_reference) {
  const Index index = index_of(repository_, parent);
  const std::set<std::string> attributes_before = attribute_files(index.get());
  apply(changes, index.get());
  std::vector<std::string> changed;
  for (const auto& file : changes.files) changed.push_back(file.first);
  keep_attributes(repository_, index.get(), attributes_before, changed, [&](const git_oid& id) {
    const auto pointer = facts_of(repository_, id).pointer;
    return pointer && owns_ && owns_(*pointer);
  });
  git_oid tree_id, commit_id;
  check(git_index_write_tree_to(&tree_id, index.get(), repository_), "write a tree");
  const Tree tree =
      made<Tree>("read a tree", [&](git_tree** t) { return git_tree_lookup(t, repository_, &tree_id); });
  const Commit parent_commit = lookup_commit(repository_, parent);
  const git_commit* parents[] = {parent_commit.get()};
  const Signature who = signature(author);
  const std::string message = description.empty() ? title : title + "\n\n" + description;
  check(git_commit_create(&commit_id, repository_, nullptr, who.get(), who.get(), nullptr, message.c_str(),
                          tree.get(), 1, parents),
        "write a commit");
  if (make_reference) {
    if (!create_reference(full_name, text_of(commit_id))) return std::nullopt;
    return text_of(commit_id);
  }
  const git_oid old = oid_of(parent);
  git_reference* raw = nullptr;
  const int result =
      git_reference_create_matching(&raw, repository_, full_name.c_str(), &commit_id, 1, &old, "commit");
  const Ref ref(raw);
  if (result == GIT_EMODIFIED || result == GIT_ELOCKED || result == GIT_ENOTFOUND) return std::nullopt;
  check(result, "move a branch");
  return text_of(commit_id);
}

bool GitRepository::create_reference(const std::string& full_name, const std::string& commit) {
  int valid = 0;
  git_reference_name_is_valid(&valid, full_name.c_str());
  if (valid == 0)
    throw HttpError{400, "'" + full_name + "' is not a name that git allows for a reference", {}, {}};
  const git_oid id = oid_of(commit);
  git_reference* raw = nullptr;
  const int result = git_reference_create(&raw, repository_, full_name.c_str(), &id, 0, "create");
  const Ref ref(raw);
  if (result == GIT_EEXISTS) return false;
  check(result, "create a reference");
  return true;
}

bool GitRepository::delete_reference(const std::string& full_name) {
  const Ref ref = made<Ref>("read a reference", [&](git_reference** r) {
    return git_reference_lookup(r, repository_, full_name.c_str());
  });
  if (ref == nullptr) return false;
  check(git_reference_delete(ref.get()), "delete a reference");
  return true;
}

std::string GitRepository::empty_commit(const std::string& author) {
  const Index index = made<Index>("make an index", [&](git_index** i) { return git_index_new(i); });
  git_oid tree_id, commit_id;
  check(git_index_write_tree_to(&tree_id, index.get(), repository_), "write a tree");
  const Tree tree =
      made<Tree>("read a tree", [&](git_tree** t) { return git_tree_lookup(t, repository_, &tree_id); });
  const Signature who = signature(author);
  check(git_commit_create(&commit_id, repository_, nullptr, who.get(), who.get(), nullptr, "initial commit",
                          tree.get(), 0, nullptr),
        "write a commit");
  return text_of(commit_id);
}

std::string iso_date(std::int64_t unix_s) {
  const std::time_t time = static_cast<std::time_t>(unix_s);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000Z", &utc);
  return text;
}

}  // namespace neuron_kernels::hub::registry
