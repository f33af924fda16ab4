#include "hub/registry/web_use.hpp"

#include <algorithm>

#include "hub/revision.hpp"

namespace neuron_kernels::hub::registry {

namespace {

constexpr std::string_view letters_and_digits =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

bool consists_of(std::string_view text, std::string_view marks) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return letters_and_digits.find(c) != std::string_view::npos || marks.find(c) != std::string_view::npos;
  });
}

bool is_name(const std::vector<Ref>& refs, const std::string& name) {
  return std::any_of(refs.begin(), refs.end(), [&](const Ref& ref) { return ref.name == name; });
}

/// One line to copy: a field, which a click or the Tab key selects whole or in part, without scripts.
Html line_to_copy(std::string_view name, std::string_view id, std::string_view text) {
  return html(
      R"(<label for="{}">{}</label>
<input class="copy" id="{}" readonly value="{}" spellcheck="false">)",
      id, name, id, text);
}

Html lines_to_copy(std::string_view name, std::string_view id, const std::string& text) {
  const auto rows = std::count(text.begin(), text.end(), '\n') + 1;
  return html(
      R"(<label for="{}">{}</label>
<textarea class="copy" id="{}" rows="{}" readonly wrap="off" spellcheck="false">{}</textarea>)",
      id, name, id, rows, text);
}

std::string pull_command(const UseView& view) {
  const std::string name = view.key.id + "@" + view.revision;
  if (view.key.type == RepositoryType::kernel) return "kernels pull " + name;
  if (view.key.type == RepositoryType::space)  // `kernels pull` has no such type
    return "hf download " + view.key.id + " --repo-type space --revision " + view.revision;
  return "kernels pull --type " + std::string(name_of(view.key.type)) + " --all " + name;
}

std::string kernel_call(const UseView& view) {
  const std::string version = view.version_branch ? "version=" + std::to_string(*view.version_branch)
                                                  : "revision=\"" + view.revision + "\"";
  return "from kernels import get_kernel\nkernel = get_kernel(\"" + view.key.id + "\", " + version + ")";
}

std::string snapshot_call(const UseView& view) {
  return "from huggingface_hub import snapshot_download\nfolder = snapshot_download(\"" + view.key.id +
         "\", repo_type=\"" + std::string(name_of(view.key.type)) + "\", revision=\"" + view.revision + "\")";
}

std::string cmake_lines(const UseView& view) {
  std::string lines = "include(neuron_kernels_pull)\nneuron_kernels_pull(" + view.key.id + " \"" +
                      view.revision + "\"" + (view.has_headers ? "" : " VARIANT c") + ")";
  if (consists_of(view.cmake_name, "_"))
    lines += "\ntarget_link_libraries(app PRIVATE " + view.cmake_name + "::" + view.cmake_name + ")";
  return lines;
}

}  // namespace

std::string command_revision(const Refs& refs, const std::string& revision, const std::string& commit) {
  const std::string number = revision.substr(std::min<std::size_t>(1, revision.size()));
  if (is_name(refs.branches, revision) && revision.starts_with('v') && !number.empty() &&
      number.find_first_not_of("0123456789") == number.npos)
    return number;
  const bool named = is_name(refs.branches, revision) || is_name(refs.tags, revision);
  return named && consists_of(revision, "._-+/") ? revision : commit;
}

std::optional<int> version_branch_of(const Refs& refs, const std::string& commit) {
  for (const PublishedVersion& version : all_versions({refs.branches, {}})) {
    if (version.commit == commit) return version.version.major;
  }
  return std::nullopt;
}

void use_variants(UseView& view, const std::vector<VariantView>& variants) {
  for (const VariantView& one : variants) {
    const auto variant = parse_variant(one.name);
    if (!variant) continue;
    const bool headers = variant->kind == Variant::Kind::header_only;
    if (headers || variant->kind == Variant::Kind::c_abi) {
      view.for_cmake = true;
      view.has_headers = view.has_headers || headers;
      if (one.metadata) view.cmake_name = one.metadata->name;
    } else {
      view.for_python = true;
    }
  }
  std::replace(view.cmake_name.begin(), view.cmake_name.end(), '-', '_');
}

Html use_section(const UseView& view) {
  Html fields;
  if (consists_of(view.base_url, ":/.-_[]"))
    fields += line_to_copy("Once per shell", "use-endpoint", "export HF_ENDPOINT=" + view.base_url);
  fields += line_to_copy("Pull", "use-pull", pull_command(view));
  if (view.key.type != RepositoryType::kernel) {
    fields += lines_to_copy("Python", "use-python", snapshot_call(view));
  } else if (view.for_python) {
    fields += lines_to_copy("Python", "use-python", kernel_call(view));
    if (!view.trusted) {
      fields += html(
          R"(<p class="hint">{} is not marked as a trusted publisher: <code>get_kernel</code> loads its
code only with <code>trust_remote_code=True</code>.</p>)",
          view.key.owner());
    }
  }
  if (view.for_cmake) fields += lines_to_copy("CMake", "use-cmake", cmake_lines(view));
  return html(R"(<section class="use" aria-labelledby="use">
<h2 id="use">Use it</h2>
{}</section>)",
              fields);
}

}  // namespace neuron_kernels::hub::registry
