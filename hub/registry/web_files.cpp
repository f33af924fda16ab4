#include "hub/registry/web_files.hpp"

#include <algorithm>

#include "hub/text.hpp"

namespace neuron_kernels::hub::registry {

namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash != path.npos ? path.substr(0, slash) : std::string();
}

/// owner/name, the revision, and each folder on the way to `path`, as links.
Html way_to(const RepositoryKey& key, const std::string& revision, const std::string& path) {
  const Address home = home_of(key), root = home / "tree" / revision;
  Html way = html(R"(<a href="{}">{}</a>
<a href="{}"><code>{}</code></a>)",
                  home, key.id, root, revision);
  for (std::size_t end = path.find('/'); end != path.npos; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    way += html(R"(<a href="{}">{}</a>)", root.below(folder), last_part(folder));
  }
  if (!path.empty()) way += html(R"(<span aria-current="page">{}</span>)", last_part(path));
  return html(R"(<nav class="way" aria-label="Folder">
{}</nav>)",
              way);
}

Html row(const FolderView& view, const TreeEntry& entry) {
  const Address home = home_of(view.key);
  const std::string name = last_part(entry.path);
  if (entry.folder) {
    return html(R"(<tr><td class="folder"><a href="{}">{}/</a></td><td></td><td></td></tr>)",
                (home / "tree" / view.revision).below(entry.path), name);
  }
  return html(
      R"(<tr><td class="file"><a href="{}">{}</a></td><td class="size">{}</td>
<td class="get"><a href="{}" download aria-label="Download {}">Download</a></td></tr>)",
      (home / "blob" / view.revision).below(entry.path), name, size_text(entry.size),
      (home / "resolve" / view.revision).below(entry.path), name);
}

}  // namespace

void sort_for_view(std::vector<TreeEntry>& entries) {
  std::stable_partition(entries.begin(), entries.end(), [](const TreeEntry& entry) { return entry.folder; });
}

Html folder_table(const FolderView& view) {
  Html rows;
  if (!view.folder.empty()) {
    rows += html(R"(<tr><td class="folder"><a href="{}">..</a></td><td></td><td></td></tr>)",
                 (home_of(view.key) / "tree" / view.revision).below(parent_of(view.folder)));
  }
  for (const TreeEntry& entry : view.entries) rows += row(view, entry);
  if (rows.empty()) return html("<p>There is no file at this revision.</p>");
  return html(
      R"(<table class="files">
<thead><tr><th>Name</th><th class="size">Size</th><th><span class="unseen">Download</span></th></tr></thead>
<tbody>
{}</tbody>
</table>)",
      rows);
}

Page folder_page(const FolderView& view) {
  const Address here = (home_of(view.key) / "tree" / view.revision).below(view.folder);
  return {view.key.id + ": files",
          html(R"({}<h1 class="unseen">Files of {}</h1>
{}{})",
               way_to(view.key, view.revision, view.folder), view.key.id, folder_table(view),
               paging_links(view.paging, here)),
          view.key.type};
}

Page file_page(const FileView& view) {
  const TreeEntry& file = view.file;
  const Address content = (home_of(view.key) / "resolve" / view.revision).below(file.path);
  Html facts = html("<dt>Size</dt><dd>{}</dd>", size_text(file.size));
  facts += file.lfs ? html("<dt>SHA-256</dt><dd><code>{}</code></dd>", file.lfs->sha256)
                    : html("<dt>Git blob</dt><dd><code>{}</code></dd>", file.oid);
  const Html shown = view.text
                         ? html(R"(<pre class="source" tabindex="0"><code>{}</code></pre>)", *view.text)
                         : html(R"(<p class="empty">This file is not shown: it is large, or not text.</p>)");
  return {view.key.id + ": " + file.path,
          html(R"({}<div class="heading">
<h1>{}</h1>
<a class="button" href="{}" download>Download</a>
</div>
<dl class="facts">
{}</dl>
{})",
               way_to(view.key, view.revision, file.path), last_part(file.path), content, facts, shown),
          view.key.type};
}

}  // namespace neuron_kernels::hub::registry
