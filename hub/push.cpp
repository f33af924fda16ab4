#include "hub/push.hpp"

#include <algorithm>
#include <map>

#include "hub/card.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/signature.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view build_folder = "build/";

const Ref* find(const std::vector<Ref>& refs, const std::string& name) {
  const auto at = std::find_if(refs.begin(), refs.end(), [&](const Ref& ref) { return ref.name == name; });
  return at != refs.end() ? &*at : nullptr;
}

class Push {
 public:
  Push(Api& api, const PushPlan& plan, const PushOptions& options)
      : api_(api), plan_(plan), options_(options) {}

  PushResult run() {
    read_refs();
    const Ref* const branch = find(refs_.branches, plan_.branch);
    const Ref* const tag = find(refs_.tags, plan_.tag);
    require_newest();
    const std::string head = branch != nullptr ? branch->commit : base_;
    const Change change = difference(head, branch == nullptr);
    result_.commit = head;
    result_.changed = !change.files.empty() || !change.gone.empty();
    if (result_.changed && tag != nullptr && !options_.retag) refuse_second_content(*tag, change);
    for (const LocalFile* file : change.files) result_.sent.push_back(file->path);
    result_.gone = change.gone;
    if (branch == nullptr) create_branch(api_, options_.repo, plan_.branch);
    if (result_.changed)
      result_.commit = commit_files(api_, options_.repo, plan_.branch, change, options_.on_progress);
    set_tag(tag);
    publish_card();
    return result_;
  }

 private:
  // The repository is made only if it is missing: pushing takes no right to create.
  void read_refs() {
    try {
      refs_ = api_.refs(options_.repo);
    } catch (const HubError& error) {
      if (error.kind != ErrorKind::not_found) throw;
      if (create_repository(api_, options_.repo, options_.visibility)) {
        options_.on_progress("made repository " + options_.repo.text());
      }
      refs_ = api_.refs(options_.repo);
    }
    const Ref* const main = find(refs_.branches, "main");
    if (main != nullptr) base_ = main->commit;
  }

  void require_newest() const {
    const Version version = *Version::parse(plan_.tag);
    for (const Ref& ref : refs_.tags) {
      const auto other = Version::parse(ref.name);
      if (!other || other->major != version.major || *other <= version) continue;
      throw HubError(ErrorKind::conflict,
                     options_.repo.text() + " has version " + other->text() + " on branch " + plan_.branch +
                         ", which is newer than " + plan_.tag,
                     "raise the version in kernel.toml above " + other->text());
    }
  }

  // What is in the way of these variants and what is missing. A new branch starts with what main has in
  // build/, which is no part of this version.
  Change difference(const std::string& head, bool is_new) const {
    Change change{"Version " + plan_.tag, head, {}, {}};
    std::map<std::string, TreeEntry> held;
    for (TreeEntry& entry : api_.tree(options_.repo, head, "", Depth::recursive)) {
      if (!entry.is_folder) held.emplace(entry.path, std::move(entry));
    }
    std::map<std::string, const LocalFile*> wanted;
    for (const LocalFile& file : plan_.files) {
      wanted.emplace(file.path, &file);
      const auto at = held.find(file.path);
      const bool same = at != held.end() && (at->second.sha256.empty() ? at->second.oid == file.git_sha1
                                                                       : at->second.sha256 == file.sha256);
      if (!same) change.files.push_back(&file);
    }
    for (const auto& [path, entry] : held) {
      if (!wanted.contains(path) && (is_new ? path.starts_with(build_folder) : belongs_to_variant(path))) {
        change.gone.push_back(path);
      }
    }
    return change;
  }

  bool belongs_to_variant(const std::string& path) const {
    return std::any_of(plan_.variants.begin(), plan_.variants.end(), [&](const std::string& variant) {
      return path.starts_with(std::string(build_folder) + variant + "/") || path == signature_path(variant);
    });
  }

  [[noreturn]] void refuse_second_content(const Ref& tag, const Change& change) const {
    const std::string& example = change.files.empty() ? change.gone.front() : change.files.front()->path;
    throw HubError(
        ErrorKind::conflict,
        options_.repo.text() + " " + plan_.tag + " is published (commit " + tag.commit.substr(0, 10) +
            ") with other content: " + std::to_string(change.files.size() + change.gone.size()) +
            " files differ, such as " + example,
        "raise the version in kernel.toml; to add a variant that was built elsewhere to the same version: "
        "--retag");
  }

  void set_tag(const Ref* tag) {
    if (tag != nullptr && (!options_.retag || tag->commit == result_.commit)) return;
    if (tag != nullptr) delete_tag(api_, options_.repo, plan_.tag);
    create_tag(api_, options_.repo, plan_.tag, result_.commit);
    result_.tagged = true;
  }

  void publish_card() {
    for (const TreeEntry& entry : api_.tree(options_.repo, "main", "", Depth::folder)) {
      if (entry.path == plan_.card.path &&
          (entry.oid == plan_.card.git_sha1 || entry.sha256 == plan_.card.sha256)) {
        return;
      }
    }
    commit_files(api_, options_.repo, "main", {"Card of version " + plan_.tag, "", {&plan_.card}, {}},
                 options_.on_progress);
    result_.card_changed = true;
  }

  Api& api_;
  const PushPlan& plan_;
  const PushOptions& options_;
  Refs refs_;
  std::string base_ = "main";
  PushResult result_;
};

}  // namespace

std::uint64_t PushPlan::bytes() const {
  std::uint64_t sum = card.size;
  for (const LocalFile& file : files) sum += file.size;
  return sum;
}

PushPlan plan_push(const fs::path& folder, const Manifest& manifest,
                   const std::vector<BuiltVariant>& variants, const KeyStore& keys,
                   const PushOptions& options) {
  PushPlan plan;
  plan.branch = manifest.branch();
  plan.tag = manifest.version.text();
  plan.files.push_back(LocalFile::on_disk(std::string(Manifest::file_name), folder / Manifest::file_name));
  for (const BuiltVariant& variant : variants) {
    plan.variants.push_back(variant.name);
    SignedVariant what{manifest.name, plan.tag, variant.name, {}};
    for (const auto& entry : fs::recursive_directory_iterator(variant.folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().lexically_relative(variant.folder).generic_string();
      plan.files.push_back(
          LocalFile::on_disk(std::string(build_folder) + variant.name + "/" + path, entry.path()));
      what.files.emplace(path, plan.files.back().sha256);
    }
    if (options.signing_key) {
      plan.files.push_back(
          LocalFile::in_memory(signature_path(variant.name), sign(what, keys, *options.signing_key)));
    }
  }
  std::sort(plan.files.begin(), plan.files.end(),
            [](const LocalFile& a, const LocalFile& b) { return a.path < b.path; });
  plan.card =
      LocalFile::in_memory("README.md", card_text(folder, manifest, options.repo.text(), plan.variants));
  return plan;
}

PushResult push(Api& api, const PushPlan& plan, const PushOptions& options) {
  return Push(api, plan, options).run();
}

}  // namespace neuron_kernels::hub
