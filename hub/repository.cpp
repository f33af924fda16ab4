#include "hub/repository.hpp"

#include <algorithm>
#include <cctype>

#include "hub/error.hpp"
#include "hub/version.hpp"

namespace neuron_kernels::hub {

namespace {

/// The plural of the type, as URLs and the cache have it.
std::string_view plural_of(RepoType type) {
  switch (type) {
    case RepoType::kernel:
      return "kernels";
    case RepoType::model:
      return "models";
    case RepoType::dataset:
      return "datasets";
  }
  return "kernels";
}

/// Letters, digits, '-', '_', '.'; begins and ends with a letter or digit; no "--" and "..", which the cache
/// and git cannot hold.
bool is_name(std::string_view text) {
  const auto plain = [](char c) { return static_cast<unsigned char>(c) < 0x80 && std::isalnum(c) != 0; };
  return !text.empty() && text.size() <= 96 && plain(text.front()) && plain(text.back()) &&
         text.find("--") == text.npos && text.find("..") == text.npos &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return plain(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

std::string_view name_of(RepoType type) {
  const std::string_view plural = plural_of(type);
  return plural.substr(0, plural.size() - 1);
}

std::string RepoId::api_path() const { return std::string(plural_of(type)) + "/" + text(); }

std::string RepoId::file_path() const {
  return type == RepoType::model ? text() : std::string(plural_of(type)) + "/" + text();
}

std::string RepoId::cache_folder() const { return std::string(plural_of(type)) + "--" + owner + "--" + name; }

RepoId parse_repo_id(std::string_view text, RepoType type) {
  std::string_view rest = text;
  if (const std::size_t scheme = rest.find("://"); scheme != rest.npos) {
    rest = rest.substr(std::min(rest.find('/', scheme + 3), rest.size() - 1) + 1);
  }
  if (std::count(rest.begin(), rest.end(), '/') == 2 && rest.starts_with(plural_of(type))) {
    rest = rest.substr(plural_of(type).size() + 1);
  }
  const std::size_t slash = rest.find('/');
  const std::string_view owner = rest.substr(0, std::min(slash, rest.size()));
  const std::string_view name = slash == rest.npos ? std::string_view() : rest.substr(slash + 1);
  if (!is_name(owner) || !is_name(name)) {
    throw HubError(
        ErrorKind::usage,
        "'" + std::string(text) +
            "' is not the name of a repository: OWNER/NAME, each of letters, digits, '-', '_' and '.'",
        "`kernels search WORD` finds names");
  }
  return {.type = type, .owner = std::string(owner), .name = std::string(name)};
}

Reference parse_reference(std::string_view text, RepoType type) {
  const std::size_t at = text.find('@', text.find("://") == text.npos ? 0 : text.rfind('/'));
  if (at == text.npos) return {.repo = parse_repo_id(text, type), .revision = {}};
  const std::string_view revision = text.substr(at + 1);
  const bool printable = std::all_of(revision.begin(), revision.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != 0x7f;
  });
  if (revision.empty() || !printable) {
    throw HubError(ErrorKind::usage, "'" + std::string(text) + "' has no version behind the '@'",
                   "name a version (@1, @1.2, @^1), a tag, a branch or a commit");
  }
  if (revision.find(' ') != revision.npos) Range::parse(revision);  // nothing else may hold blanks
  return {.repo = parse_repo_id(text.substr(0, at), type), .revision = std::string(revision)};
}

}  // namespace neuron_kernels::hub
