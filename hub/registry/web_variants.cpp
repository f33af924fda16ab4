#include "hub/registry/web_variants.hpp"

#include "hub/text.hpp"

namespace neuron_kernels::hub::registry {

namespace {

std::string backend_text(const Backend& backend) {
  const std::string version = backend.version ? " " + backend.version->text() : "";
  if (backend.name == "universal") return "any backend";
  if (backend.name == "cuda") return "CUDA" + version;
  if (backend.name == "rocm") return "ROCm" + version;
  return (backend.name == "cpu" ? "CPU" : backend.name) + version;
}

std::string framework_text(const Variant& variant) {
  switch (variant.kind) {
    case Variant::Kind::torch_stable_abi:
      return "PyTorch " + variant.framework.text() + " or newer";
    case Variant::Kind::torch:
      return "PyTorch " + variant.framework.text();
    case Variant::Kind::tvm_ffi:
      return "tvm-ffi " + variant.framework.text();
    case Variant::Kind::noarch:
      return "PyTorch, no compiled code";
    case Variant::Kind::c_abi:
      return "C library";
    case Variant::Kind::header_only:
      return "C++ headers, any platform";
  }
  return {};
}

Html needs(const VariantView& view) {
  if (!view.metadata) return html(R"(<span class="problem">{}</span>)", view.problem);
  const VariantMetadata& metadata = *view.metadata;
  Html lines;
  if (!metadata.archs.empty()) lines += html("<div>devices: {}</div>", joined(metadata.archs));
  if (!metadata.python_depends.empty())
    lines += html("<div>Python: {}</div>", joined(metadata.python_depends));
  for (const KernelDependency& dependency : metadata.kernel_depends)
    lines += html("<div>{}@{}</div>", dependency.repository, dependency.revision);
  if (!metadata.kernels_minver.empty())
    lines += html("<div>kernels {} or newer</div>", metadata.kernels_minver);
  return lines.empty() ? html("nothing else") : lines;
}

}  // namespace

std::string platform_text(const Variant& variant) {
  using Kind = Variant::Kind;
  std::string text = framework_text(variant);
  if (variant.cxx11_abi) text += *variant.cxx11_abi ? ", C++11 ABI" : ", C++98 ABI";
  if (variant.kind != Kind::c_abi && variant.kind != Kind::header_only)
    text += ", " + backend_text(variant.backend);
  if (variant.compiled()) text += ", " + variant.arch + " " + variant.os;
  return text;
}

Html variants_table(const std::vector<VariantView>& variants) {
  if (variants.empty()) return html("<p>This revision has no folder build/, so no variants.</p>");
  Html rows;
  for (const VariantView& view : variants) {
    const auto variant = parse_variant(view.name);
    rows +=
        html(R"(<tr><td><a href="{}"><code>{}</code></a></td><td>{}</td><td>{}</td>)", view.folder, view.name,
             variant ? platform_text(*variant) : "a name of no known form: it is never chosen", needs(view));
    rows +=
        html(R"(<td class="size">{}</td><td class="size">{}</td></tr>)", view.files, size_text(view.bytes));
  }
  return html(
      R"(<div class="scroll" tabindex="0">
<table class="variants">
<thead><tr><th>Variant</th><th>Runs on</th><th>Needs</th><th class="size">Files</th><th class="size">Size</th></tr></thead>
<tbody>
{}</tbody>
</table>
</div>)",
      rows);
}

}  // namespace neuron_kernels::hub::registry
