#include "hub/metadata.hpp"

#include <nlohmann/json.hpp>

#include "hub/digest.hpp"
#include "hub/process.hpp"
#include "hub/signature.hpp"
#include "neuron_kernels/version.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;
using nlohmann::json;

VariantFacts facts_of(const fs::path& folder) {
  VariantFacts facts;
  const Finished head = run_program(
      {"git", "-C", folder.string(), "rev-parse", "--verify", "--quiet", "HEAD"}, Capture::output);
  const std::string commit = head.output.substr(0, head.output.find('\n'));
  if (head.status != 0 || !is_hex(commit, 40)) return facts;
  const Finished status =
      run_program({"git", "-C", folder.string(), "status", "--porcelain", "--untracked-files=no", "--", "."},
                  Capture::output);
  facts.commit = commit;
  facts.dirty = status.status != 0 || !status.output.empty();
  return facts;
}

namespace {

// Hugging Face's kernels loads a dependency by its version branch, so a range of several major versions has no
// place in kernel-depends.
void add_dependencies(const Manifest& manifest, json& document) {
  for (const Dependency& one : manifest.dependencies) {
    document["dependencies"][one.repository] = one.range.text();
    if (const auto major = one.range.only_major())
      document["kernel-depends"].push_back({{"repo-id", one.repository}, {"version", *major}});
  }
}

}  // namespace

std::string metadata_text(const Manifest& manifest, const VariantFacts& facts, const fs::path& folder) {
  json files = json::object();
  for (const auto& [path, digest] : digest_list(folder)) {
    if (path != "metadata.json") files[path] = to_base64(from_hex(digest));
  }
  json document{{"name", manifest.name},
                {"id", facts.id},
                {"version", manifest.version.major},
                {"license", manifest.license},
                {"python-depends", facts.python_depends},
                {"backend", {{"type", "cpu"}}},
                {"digest", {{"algorithm", "sha256"}, {"files", files}}},
                {"package-version", manifest.version.text()}};
  // The key is the Hub's; the builder is this program.
  json provenance{{"kernel-builder", {{"version", std::string(version)}}}};
  if (!facts.commit.empty()) provenance["kernel"] = {{"commit", facts.commit}, {"dirty", facts.dirty}};
  document["provenance"] = provenance;
  if (!manifest.repository.empty()) document["source"] = manifest.repository;
  add_dependencies(manifest, document);
  return document.dump(2) + "\n";
}

}  // namespace neuron_kernels::hub
