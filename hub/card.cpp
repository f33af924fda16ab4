#include "hub/card.hpp"

#include "hub/files.hpp"
#include "hub/text.hpp"

namespace neuron_kernels::hub {
namespace {

std::string front_matter(const Manifest& manifest) {
  std::string license = manifest.license;  // the Hub writes its names in lower case
  for (char& c : license) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return "---\nlibrary_name: kernels\nlicense: \"" + license + "\"\ntags:\n- kernel\n---\n\n";
}

// The range that a user of this version most likely wants: ^1 or, below 1.0, ^0.3.
std::string usual_range(const Version& v) {
  return "^" + std::to_string(v.major) + (v.major == 0 ? "." + std::to_string(v.minor) : "");
}

std::string code(const char* language, const std::string& text) {
  return std::string("```") + language + "\n" + text + "```\n\n";
}

}  // namespace

std::string card_text(const std::filesystem::path& folder, const Manifest& manifest,
                      const std::string& repository, const std::vector<std::string>& variants) {
  std::error_code error;
  if (std::filesystem::is_regular_file(folder / "CARD.md", error)) {
    const std::string card = read_file(folder / "CARD.md");
    return card.starts_with("---\n") ? card : front_matter(manifest) + card;
  }
  const std::string range = usual_range(manifest.version), id = manifest.identifier();
  std::string text = front_matter(manifest) + "# " + manifest.name + "\n\n";
  if (!manifest.description.empty()) text += manifest.description + "\n\n";
  text += "## Use\n\n" + code("bash", "kernels pull " + repository + "@" + range + "\n");
  if (manifest.header) {
    text += code("cmake", "neuron_kernels_pull(" + repository + " \"" + range +
                              "\")\ntarget_link_libraries(app PRIVATE " + id + "::" + id + ")\n");
  }
  if (manifest.torch) {
    text += code("python", "from kernels import get_kernel\n\nkernel = get_kernel(\"" + repository +
                               "\", version=" + std::to_string(manifest.version.major) + ")\n");
  }
  if (!manifest.kernels.empty()) {
    text += "## Kernels\n\n| kernel | C++ | header | dtypes | chips |\n|---|---|---|---|---|\n";
    for (const Manifest::Kernel& kernel : manifest.kernels) {
      text += "| " + kernel.name + " | `" + kernel.entry + "` | `" + kernel.header + "` | " +
              joined(kernel.dtypes) + " | " + joined(kernel.chips) + " |\n";
    }
    text += "\n";
  }
  text += "## Variants\n\n";
  for (const std::string& variant : variants) text += "- `" + variant + "`\n";
  if (!manifest.repository.empty()) text += "\nSources: <" + manifest.repository + ">\n";
  return text;
}

}  // namespace neuron_kernels::hub
