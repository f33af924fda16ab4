#include "hub/registry/web_package.hpp"

namespace neuron_kernels::hub::registry {

namespace {

Html heading(const PackageView& view) {
  Html labels = label(name_of(view.key.type));
  if (view.settings.is_private) labels += label("private");
  if (!view.settings.gated.empty()) labels += label("gated");
  if (view.trusted) labels += label("trusted publisher");
  if (view.content && view.content->card) {
    const FrontMatter& front = view.content->card->front;
    if (!front.license.empty()) labels += label("licence: " + front.license);
    for (const std::string& tag : front.tags) labels += label(tag);
  }
  return html(
      R"(<div class="heading">
<h1><a class="owner" href="{}">{}</a>/{}</h1>
<p class="labels">
{}</p>
<p class="details"><span>at <code>{}</code></span>
<span>commit <code>{}</code></span>
<span>updated {}</span></p>
</div>)",
      Address::of({view.key.owner()}), view.key.owner(), view.key.name(), labels, view.revision,
      view.commit.substr(0, 12), date_of(view.updated));
}

Html versions_section(const PackageView& view) {
  Html items;
  for (const PublishedVersion& version : view.versions) {
    const Address address = home_of(view.key).with({{"revision", version.ref}});
    const std::string_view kind = version.is_branch ? "branch" : "tag";
    items += version.ref == view.revision
                 ? html(R"(<li><a href="{}" aria-current="page">{}</a> <span>{}</span></li>)", address,
                        version.ref, kind)
                 : html(R"(<li><a href="{}">{}</a> <span>{}</span></li>)", address, version.ref, kind);
  }
  const Html list = items.empty() ? html("<p>None: there is no tag X.Y.Z and no branch vN.</p>")
                                  : html("<ul>\n{}</ul>", items);
  return html(
      R"(<section class="versions" aria-labelledby="versions">
<h2 id="versions">Versions</h2>
{}</section>)",
      list);
}

Html card_section(const PackageView& view, const ContentView& content) {
  if (!content.card) {
    return html(
        R"(<section class="card">
<p class="empty">This repository has no card: there is no README.md on
<code>main</code>.</p>
</section>)");
  }
  Html rest;
  if (content.card->cut) {
    rest = html(
        R"(<p class="notice">The card is longer than what is shown here.
<a href="{}">The whole file</a></p>)",
        home_of(view.key) / "resolve" / "main" / "README.md");
  }
  return html(R"(<section class="card" id="card" aria-label="Card">
{}</section>
{})",
              content.card->body, rest);
}

Html variants_section(const PackageView& view, const ContentView& content) {
  if (view.key.type != RepositoryType::kernel) return {};
  return html(R"(<section aria-labelledby="variants">
<h2 id="variants">Variants</h2>
{}</section>)",
              variants_table(content.variants));
}

Html files_section(const PackageView& view, const ContentView& content) {
  Html more;
  if (content.files.paging.pages() > 1) {
    more = html(R"(<p><a href="{}">All {} entries</a></p>)", home_of(view.key) / "tree" / view.revision,
                content.files.paging.total);
  }
  return html(R"(<section aria-labelledby="files">
<h2 id="files">Files</h2>
{}{}</section>)",
              folder_table(content.files), more);
}

Html content_sections(const PackageView& view) {
  if (!view.content) {
    return html(
        R"(<div class="notice">
<p>Access to this {} is restricted. Members of {} see its card and its
files, and pull it with a token.</p>
</div>)",
        name_of(view.key.type), view.key.owner());
  }
  Html sections = card_section(view, *view.content);
  sections += variants_section(view, *view.content);
  sections += files_section(view, *view.content);
  return sections;
}

}  // namespace

Page package_page(const PackageView& view) {
  const Html use = view.content ? use_section(view.content->use) : Html();
  return {view.key.id,
          html(R"({}<div class="columns">
<aside>
{}{}</aside>
<div class="content">
{}</div>
</div>)",
               heading(view), use, versions_section(view), content_sections(view)),
          view.key.type};
}

}  // namespace neuron_kernels::hub::registry
