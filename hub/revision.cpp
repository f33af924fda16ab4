#include "hub/revision.hpp"

#include <algorithm>
#include <set>

#include "hub/digest.hpp"
#include "hub/error.hpp"

namespace neuron_kernels::hub {

namespace {

constexpr std::size_t most_listed = 20;

/// N of "vN".
std::optional<int> branch_number(std::string_view name) {
  if (name.size() < 2 || name.size() > 8 || name[0] != 'v' ||
      name.find_first_not_of("0123456789", 1) != name.npos) {
    return {};
  }
  return std::stoi(std::string(name.substr(1)));
}

std::optional<Version> tag_version(std::string_view name) {
  return Version::parse(name.starts_with('v') ? name.substr(1) : name);
}

const Ref* find(const std::vector<Ref>& refs, std::string_view name) {
  const auto found = std::find_if(refs.begin(), refs.end(), [&](const Ref& ref) { return ref.name == name; });
  return found == refs.end() ? nullptr : &*found;
}

ResolvedRevision resolved(const Refs& refs, const std::string& commit, const std::string& name) {
  ResolvedRevision revision{.commit = commit, .name = name, .refs = {}};
  if (name != commit) revision.refs.push_back(name);
  for (const Ref& branch : refs.branches) {  // get_kernel(version=N) looks for refs/vN when it is offline
    if (branch.commit == commit && branch.name != name && branch_number(branch.name)) {
      revision.refs.push_back(branch.name);
    }
  }
  return revision;
}

bool has_digits_of_commit(std::string_view text) {
  return text.size() >= 7 && text.size() < 40 && is_hex(text, text.size());
}

}  // namespace

std::vector<PublishedVersion> published_versions(const Refs& refs) {
  std::vector<PublishedVersion> versions;
  std::set<int> tagged;
  for (const Ref& tag : refs.tags) {
    if (auto version = tag_version(tag.name)) {
      tagged.insert(version->major);
      versions.push_back({.version = std::move(*version), .ref = tag.name, .commit = tag.commit});
    }
  }
  for (const Ref& branch : refs.branches) {
    const auto number = branch_number(branch.name);
    if (!number || tagged.count(*number) != 0) continue;
    versions.push_back({.version = Version{*number, 0, 0, {}, {}},
                        .ref = branch.name,
                        .commit = branch.commit,
                        .is_branch = true});
  }
  std::stable_sort(versions.begin(), versions.end(),
                   [](const auto& a, const auto& b) { return (a.version <=> b.version) > 0; });
  return versions;
}

std::vector<PublishedVersion> all_versions(const Refs& refs) {
  std::vector<PublishedVersion> versions = published_versions({.branches = refs.branches, .tags = {}});
  for (PublishedVersion& tag : published_versions({.branches = {}, .tags = refs.tags})) {
    versions.push_back(std::move(tag));
  }
  std::stable_sort(versions.begin(), versions.end(), [](const auto& a, const auto& b) {
    if (a.version.major != b.version.major) return a.version.major > b.version.major;
    if (a.is_branch != b.is_branch) return a.is_branch;
    return (a.version <=> b.version) > 0;
  });
  return versions;
}

ResolvedRevision resolve_revision(const Refs& refs, const std::string& revision, const std::string& subject) {
  std::string name = revision;
  for (const std::string_view prefix : {"refs/heads/", "refs/tags/"}) {
    if (name.starts_with(prefix)) name = name.substr(prefix.size());
  }
  if (const Ref* tag = find(refs.tags, name)) return resolved(refs, tag->commit, name);
  if (const Ref* branch = find(refs.branches, name)) return resolved(refs, branch->commit, name);
  if (name.size() < 8 && name.find_first_not_of("0123456789") == name.npos) {
    if (const Ref* branch = find(refs.branches, "v" + name))
      return resolved(refs, branch->commit, "v" + name);
  }
  if (is_hex(name, 40)) return resolved(refs, name, name);
  if (has_digits_of_commit(name)) {
    for (const auto* list : {&refs.branches, &refs.tags}) {
      for (const Ref& ref : *list) {
        if (ref.commit.starts_with(name)) return resolved(refs, ref.commit, ref.commit);
      }
    }
  }
  std::optional<Range> range;
  try {
    range = Range::parse(name);
  } catch (const HubError&) {  // no range: a name that does not exist
  }
  if (range) {
    for (const PublishedVersion& version : published_versions(refs)) {
      if (range->contains(version.version)) return resolved(refs, version.commit, version.ref);
    }
  }
  throw HubError(
      ErrorKind::not_found,
      subject + (range ? " has no version in '" + revision + "'" : " has no revision '" + revision + "'") +
          "; versions: " + versions_text(refs),
      "a revision is a version or range (" + std::string(Range::forms) +
          "), a tag, a branch or a commit of 40 digits");
}

std::string versions_text(const Refs& refs) {
  std::string text;
  std::size_t count = 0;
  const auto add = [&](const std::string& name) {
    if (++count > most_listed) return;
    text += (text.empty() ? "" : ", ") + name;
  };
  std::vector<Ref> branches = refs.branches;
  std::erase_if(branches, [](const Ref& ref) { return !branch_number(ref.name); });
  std::sort(branches.begin(), branches.end(),
            [](const Ref& a, const Ref& b) { return branch_number(a.name) > branch_number(b.name); });
  for (const Ref& branch : branches) add(branch.name);
  for (const PublishedVersion& version : published_versions(refs)) {
    if (!version.is_branch) add(version.ref);
  }
  if (count > most_listed) text += " and " + std::to_string(count - most_listed) + " more";
  return text.empty() ? "none" : text;
}

}  // namespace neuron_kernels::hub
