// Routes that answer browsers: lists, packages, folders and files as pages.
#include <fcntl.h>

#include <map>

#include "hub/error.hpp"
#include "hub/registry/service.hpp"
#include "hub/registry/utf8.hpp"
#include "hub/registry/web_list.hpp"
#include "hub/registry/web_package.hpp"
#include "hub/text.hpp"

namespace neuron_kernels::hub::registry {

namespace {

constexpr std::size_t listed_on_a_page = 50, files_on_a_page = 500;
constexpr std::uint64_t most_shown_bytes = 256 << 10;  // of a text file

Refs refs_of(const GitRepository& repository) {
  Refs refs;
  for (const Reference& branch : repository.branches()) refs.branches.push_back({branch.name, branch.commit});
  for (const Reference& tag : repository.tags()) refs.tags.push_back({tag.name, tag.commit});
  return refs;
}

void read_metadata(const GitRepository& repository, const std::string& commit, VariantView& variant) {
  const auto entry = repository.entry(commit, "build/" + variant.name + "/metadata.json");
  if (!entry || entry->folder || entry->lfs) {
    variant.problem = "it has no metadata.json";
    return;
  }
  try {
    variant.metadata = parse_variant_metadata(repository.blob(entry->oid), "metadata.json");
  } catch (const HubError& error) {
    variant.problem = error.what();
  }
}

/// Folders below build/, with what is in them.
std::vector<VariantView> variants_of(const GitRepository& repository, const std::string& commit,
                                     const Address& build) {
  std::map<std::string, VariantView> found;
  const auto entries = repository.list(commit, "build", true);
  if (!entries) return {};
  for (const TreeEntry& entry : *entries) {
    const std::string path = entry.path.substr(std::string_view("build/").size());
    const std::string name = path.substr(0, path.find('/'));
    if (entry.folder || path == name) continue;
    VariantView& variant = found[name];
    variant.bytes += entry.size;
    ++variant.files;
  }
  std::vector<VariantView> variants;
  for (auto& [name, variant] : found) {
    variant.name = name;
    variant.folder = build / name;
    read_metadata(repository, commit, variant);
    variants.push_back(std::move(variant));
  }
  return variants;
}

std::unique_ptr<Exchange> redirect(const Address& target) {
  return without_body([target] { return redirect_reply(target); });
}

ListedRepository listed(const Repositories::Entry& entry, const GitRepository& repository,
                        const std::optional<std::string>& readme) {
  ListedRepository row{entry.first, entry.second, {}, {}, {}};
  const auto versions = published_versions(refs_of(repository));
  if (!versions.empty()) row.version = versions.front().ref;
  const auto head = versions.empty() ? repository.resolve("main") : versions.front().commit;
  if (head) row.updated = repository.commit_info(*head).date;
  if (readme) row.summary = card_summary(*readme);
  return row;
}

}  // namespace

std::unique_ptr<Exchange> Service::web(const Call& call, const Parts& address) {
  Parts p = address;
  while (!p.empty() && p.back().empty()) p.pop_back();
  if (p.empty()) return web_list(call, std::nullopt, "");
  const auto named = type_of_plural(p[0]);
  if (p.size() == 1) return named ? web_list(call, named, "") : web_list(call, std::nullopt, p[0]);
  const RepositoryType type = take_type(p);
  if (p.size() < 2) return nullptr;
  const RepositoryKey key{type, p[0] + "/" + p[1]};
  if (p.size() == 2) return web_package(call, key);
  const std::string& verb = p[2];
  // Where the answers to a commit point to.
  if (p.size() == 4 && verb == "commit") return redirect(home_of(key) / "tree" / p[3]);
  if (p.size() == 4 && verb == "discussions") return redirect(home_of(key) / "tree" / ("refs/pr/" + p[3]));
  if (p.size() < 4 || (verb != "tree" && verb != "blob")) return nullptr;
  const std::string path = joined(std::span(p).subspan(4), "/");
  return verb == "tree" ? web_folder(call, key, p[3], path) : web_file(call, key, p[3], path);
}

std::unique_ptr<Exchange> Service::web_list(const Call& call, std::optional<RepositoryType> type,
                                            const std::string& owner) {
  return without_body([this, call, type, owner] {
    const std::string search = call.head.parameter("search");
    std::vector<Repositories::Entry> found;
    for (const RepositoryType one : shown_types) {
      if (type && *type != one) continue;
      const auto more = visible(call, one, search, owner);
      found.insert(found.end(), more.begin(), more.end());
    }
    if (found.empty() && !owner.empty() && search.empty())
      throw HttpError{404, "There is no public repository of '" + owner + "'.", {}, {}};
    ListView view{type, owner, search, {call.head.parameter("page"), listed_on_a_page, found.size()}, {}};
    for (std::size_t i = view.paging.first(); i < view.paging.end(); ++i) {
      const auto& [key, settings] = found[i];
      if (!repositories_.find(key)) continue;  // deleted meanwhile
      const GitRepository repository = open(key);
      const auto readme = passes_gate(call, key, settings) ? web_readme(repository) : std::nullopt;
      view.entries.push_back(listed(found[i], repository, readme));
    }
    return page_reply(list_page(view));
  });
}

std::unique_ptr<Exchange> Service::web_package(const Call& call, const RepositoryKey& key) {
  const RepositoryKey kernel{RepositoryType::kernel, key.id};
  if (key.type == RepositoryType::model && !readable(call, key) && readable(call, kernel))
    return redirect(home_of(kernel));  // people write owner/name
  const RepositorySettings settings = require(call, key, Right::read);
  return without_body([this, call, key, settings] {
    const GitRepository repository = open(key);
    const Refs refs = refs_of(repository);
    PackageView view{key, settings};
    view.versions = all_versions(refs);
    const auto newest = published_versions(refs);
    view.revision = call.head.parameter("revision", newest.empty() ? "main" : newest.front().ref);
    view.commit = require_revision(repository, view.revision);
    view.updated = repository.commit_info(view.commit).date;
    const auto organisation = accounts_.organisation(key.owner());
    view.trusted = organisation && organisation->trusted;
    if (!passes_gate(call, key, settings)) return page_reply(package_page(view));
    auto entries = repository.list(view.commit, "", false).value_or(std::vector<TreeEntry>());
    sort_for_view(entries);
    const Paging paging("1", files_on_a_page, entries.size());
    entries.resize(paging.end());
    const Address build = home_of(key) / "tree" / view.revision / "build";
    ContentView content{variants_of(repository, view.commit, build),
                        {key, view.revision, "", paging, std::move(entries)},
                        {key, call.head.base_url, command_revision(refs, view.revision, view.commit)}};
    content.use.version_branch = version_branch_of(refs, view.commit);
    content.use.trusted = view.trusted;
    use_variants(content.use, content.variants);
    if (const auto readme = web_readme(repository)) content.card = read_card(*readme, home_of(key));
    view.content = std::move(content);
    return page_reply(package_page(view));
  });
}

std::optional<std::string> Service::web_readme(const GitRepository& repository) const {
  const auto main = repository.resolve("main");
  const auto entry = main ? repository.entry(*main, "README.md") : std::nullopt;
  if (!entry || entry->folder) return std::nullopt;
  if (!entry->lfs) return repository.blob(entry->oid);
  const Descriptor file(::open(objects_.path(entry->lfs->sha256).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  return read_at(file.get(), 0, std::min<std::size_t>(entry->size, 2 * Card::most_bytes));
}

std::unique_ptr<Exchange> Service::web_folder(const Call& call, const RepositoryKey& key,
                                              const std::string& revision, const std::string& folder) {
  require_gate(call, key, require(call, key, Right::read));
  return without_body([this, call, key, revision, folder] {
    const GitRepository repository = open(key);
    auto entries = repository.list(require_revision(repository, revision), folder, false);
    if (!entries) throw HttpError{404, "There is no folder '" + folder + "' at " + revision + ".", {}, {}};
    sort_for_view(*entries);
    const Paging paging(call.head.parameter("page"), files_on_a_page, entries->size());
    const auto begin = entries->begin() + static_cast<std::ptrdiff_t>(paging.first());
    const auto end = entries->begin() + static_cast<std::ptrdiff_t>(paging.end());
    return page_reply(folder_page({key, revision, folder, paging, {begin, end}}));
  });
}

std::unique_ptr<Exchange> Service::web_file(const Call& call, const RepositoryKey& key,
                                            const std::string& revision, const std::string& path) {
  require_gate(call, key, require(call, key, Right::read));
  return without_body([this, key, revision, path] {
    const GitRepository repository = open(key);
    const auto entry = repository.entry(require_revision(repository, revision), path);
    if (!entry) throw HttpError{404, "There is no file '" + path + "' at " + revision + ".", {}, {}};
    if (entry->folder) return redirect_reply((home_of(key) / "tree" / revision).below(path));
    FileView view{key, revision, *entry, std::nullopt};
    if (!entry->lfs && entry->size <= most_shown_bytes) {
      const std::string content = repository.blob(entry->oid);
      if (content.find('\0') == content.npos && is_utf8(content)) view.text = content;
    }
    return page_reply(file_page(view));
  });
}

}  // namespace neuron_kernels::hub::registry
