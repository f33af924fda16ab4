#include "hub/registry/web_list.hpp"

namespace neuron_kernels::hub::registry {

namespace {

Html entry_html(const ListedRepository& entry, bool with_type) {
  Html labels, details;
  if (with_type) labels += label(name_of(entry.key.type));
  if (entry.settings.is_private) labels += label("private");
  if (!entry.settings.gated.empty()) labels += label("gated");
  if (!entry.version.empty()) details += html(R"(<span class="version">{}</span>)", entry.version);
  if (!entry.updated.empty()) details += html("<span>updated {}</span>", date_of(entry.updated));
  Html summary;
  if (!entry.summary.empty()) summary = html("<p>{}</p>", entry.summary);
  return html(
      R"(<li>
<h2><a href="{}"><span class="owner">{}/</span>{}</a></h2>
{}{}<p class="details">{}</p>
</li>)",
      home_of(entry.key), entry.key.owner(), entry.key.name(), labels, summary, details);
}

std::string title_of(const ListView& view) {
  if (!view.search.empty()) return "Search for “" + view.search + "”";
  if (!view.owner.empty()) return view.owner;
  return view.type ? heading_of(*view.type) : "All packages";
}

Html count_of(const ListView& view) {
  const Paging& paging = view.paging;
  if (paging.pages() > 1) return html("{}–{} of {}", paging.first() + 1, paging.end(), paging.total);
  return paging.total == 1 ? html("1 repository") : html("{} repositories", paging.total);
}

Html nothing_found(const ListView& view) {
  if (view.search.empty()) {
    return html(
        R"(<div class="empty">
<p>Nothing is published here yet.</p>
<p><code>kernels push --to owner/name</code> publishes a package.</p>
</div>)");
  }
  return html(
      R"(<div class="empty">
<p>No repository that you may see has “{}” in its name.</p>
<p>A search looks for a part of owner/name. <a href="/">All packages</a></p>
</div>)",
      view.search);
}

}  // namespace

Page list_page(const ListView& view) {
  const std::string title = title_of(view);
  Html body = html(R"(<div class="heading">
<h1>{}</h1>
<p>{}</p>
</div>)",
                   title, count_of(view));
  if (view.entries.empty()) {
    body += nothing_found(view);
  } else {
    Html entries;
    for (const ListedRepository& entry : view.entries) entries += entry_html(entry, !view.type);
    body += html(R"(<ul class="repositories">
{}</ul>)",
                 entries);
  }
  const Address here = view.type             ? Address::of({plural_of(*view.type)})
                       : !view.owner.empty() ? Address::of({view.owner})
                                             : Address();
  body += paging_links(view.paging, here, view.search);
  return {title, body, view.type, view.search};
}

}  // namespace neuron_kernels::hub::registry
