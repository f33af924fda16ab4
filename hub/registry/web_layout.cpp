#include "hub/registry/web_layout.hpp"

#include <algorithm>
#include <charconv>

#include "hub/digest.hpp"

namespace neuron_kernels::hub::registry {

extern const std::string_view web_style_css, web_icon_svg;  // made by the build from web/

namespace {

struct Asset {
  std::string_view name, type, content;
  std::string digest;
};

const Asset* find_asset(std::string_view name) {
  static const Asset assets[] = {
      {"style.css", "text/css; charset=utf-8", web_style_css, sha256_hex(web_style_css).substr(0, 16)},
      {"icon.svg", "image/svg+xml", web_icon_svg, sha256_hex(web_icon_svg).substr(0, 16)}};
  const auto found = std::find_if(std::begin(assets), std::end(assets),
                                  [&](const Asset& asset) { return asset.name == name; });
  return found != std::end(assets) ? &*found : nullptr;
}

/// With its digest: a browser may keep it for good.
Address asset_address(std::string_view name) {
  return Address::of({"_web", name}).with({{"v", find_asset(name)->digest}});
}

Html navigation(std::optional<RepositoryType> current) {
  Html links;
  for (const RepositoryType type : shown_types) {
    const Address address = Address::of({plural_of(type)});
    links += current == type ? html(R"(<a href="{}" aria-current="page">{}</a>)", address, heading_of(type))
                             : html(R"(<a href="{}">{}</a>)", address, heading_of(type));
  }
  return links;
}

std::string status_title(int status) {
  if (status == 401) return "No access without a token";
  if (status == 403) return "No access";
  if (status == 404) return "Not found";
  return status < 500 ? "This cannot be answered" : "The server failed";
}

}  // namespace

Reply page_reply(const Page& page, int status) {
  const Address search =
      page.type ? Address::of({plural_of(*page.type)}) : Address();  // a search stays in its part
  const Html document = html(
      R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{}</title>
<link rel="stylesheet" href="{}">
<link rel="icon" href="{}">
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="site">
<div class="wide">
<a class="brand" href="/"><img src="{}" alt="" width="26" height="26">kernels</a>
<form class="search" role="search" action="{}">
<input type="search" name="search" value="{}" aria-label="Search by name" placeholder="Search by name" maxlength="200">
<button>Search</button>
</form>
<nav aria-label="Types of repositories">
{}</nav>
</div>
</header>
<main id="content" class="wide">
{}</main>
<footer class="site"><div class="wide">Served by <code>kernels serve</code>. It speaks the Hugging Face Hub's protocol: set
<code>HF_ENDPOINT</code> to this address.</div></footer>
</body>
</html>
)",
      page.title + " · kernels", asset_address("style.css"), asset_address("icon.svg"),
      asset_address("icon.svg"), search, page.search, navigation(page.type), page.body);
  Reply reply = Reply::of("text/html; charset=utf-8", document.markup(), status);
  for (const auto& [name, value] : {
           std::pair{"Content-Security-Policy",
                     "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
                     "base-uri 'none'; frame-ancestors 'none'"},
           std::pair{"X-Content-Type-Options", "nosniff"},
           std::pair{"Referrer-Policy", "same-origin"},
           std::pair{"Cross-Origin-Opener-Policy", "same-origin"},
           std::pair{"Cross-Origin-Resource-Policy", "same-origin"},
           std::pair{"Cache-Control", "private, no-cache"},  // it differs by who asks, and with every push
           std::pair{"Vary", "Accept, Authorization"},
       }) {
    reply.fields.emplace_back(name, value);
  }
  return reply;
}

Reply error_page(const HttpError& error) {
  const bool hidden = error.code == "RepoNotFound";
  const int status = hidden ? 404 : error.status;
  const std::string message = hidden ? "There is no such repository here, or it is private." : error.message;
  const std::string title = status_title(status);
  Html hint;
  if (status == 401 || status == 403) {
    hint = html(
        "<p>Members of its organisation pull it with a token: <code>kernels login</code>, then "
        "<code>kernels pull</code>.</p>");
  }
  Reply reply = page_reply({title, html(R"(<div class="notice">
<p class="status">{}</p>
<h1>{}</h1>
<p>{}</p>
{}<p><a href="/">All packages</a></p>
</div>)",
                                        status, title, message, hint)},
                           status);
  if (!hidden) reply.fields.insert(reply.fields.end(), error.fields.begin(), error.fields.end());
  if (!error.code.empty()) reply.fields.emplace_back("X-Error-Code", error.code);
  return reply;
}

namespace {

class WithErrorPages final : public Exchange {
 public:
  explicit WithErrorPages(std::unique_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
  void body(Bytes data) override { exchange_->body(data); }
  Reply finish() override {
    try {
      return exchange_->finish();
    } catch (...) {
      return error_page(current_error());
    }
  }

 private:
  std::unique_ptr<Exchange> exchange_;
};

}  // namespace

std::unique_ptr<Exchange> with_error_pages(const std::function<std::unique_ptr<Exchange>()>& begin) {
  try {
    return std::make_unique<WithErrorPages>(begin());
  } catch (...) {
    return without_body([error = current_error()] { return error_page(error); });
  }
}

Reply redirect_reply(const Address& target) {
  Reply reply = Reply::text("see " + target.text() + "\n", 302);
  reply.fields.emplace_back("Location", target.text());
  return reply;
}

bool wants_page(const RequestHead& head) {
  return head.is_get() && head.field("Accept").find("text/html") != std::string_view::npos &&
         !head.path.starts_with("/api/") && !head.path.starts_with("/_");
}

Reply asset_reply(const std::string& name, std::string_view if_none_match) {
  const Asset* asset = find_asset(name);
  if (asset == nullptr) throw HttpError{404, "there is no file '" + name + "' for pages", {}, {}};
  const std::string etag = "\"" + asset->digest + "\"";
  const bool known = if_none_match.find(etag) != std::string_view::npos;
  Reply reply = Reply::of(std::string(asset->type).c_str(), known ? "" : std::string(asset->content));
  reply.status = known ? 304 : 200;
  reply.fields.emplace_back("ETag", etag);
  reply.fields.emplace_back("Cache-Control", "public, max-age=31536000, immutable");
  reply.fields.emplace_back("X-Content-Type-Options", "nosniff");
  return reply;
}

Paging::Paging(std::string_view wanted, std::size_t page_length, std::size_t items)
    : length(page_length), total(items) {
  std::from_chars(wanted.data(), wanted.data() + wanted.size(), page);
  page = std::clamp<std::size_t>(page, 1, pages());
}

Html paging_links(const Paging& paging, const Address& here, std::string_view search) {
  if (paging.pages() == 1) return {};
  const auto address = [&](std::size_t page) {
    return here.with({{"search", search}, {"page", std::to_string(page)}});
  };
  Html links = html(R"(<nav class="pages" aria-label="Pages">)");
  if (paging.page > 1) links += html(R"(<a rel="prev" href="{}">Previous</a>)", address(paging.page - 1));
  links += html("<span>Page {} of {}</span>", paging.page, paging.pages());
  if (paging.page < paging.pages())
    links += html(R"(<a rel="next" href="{}">Next</a>)", address(paging.page + 1));
  links += html("</nav>");
  return links;
}

Html label(std::string_view text) { return html(R"(<span class="label">{}</span>)", text); }

Html date_of(std::string_view iso) {
  return html(R"(<time datetime="{}">{}</time>)", iso, iso.substr(0, 10));
}

Address home_of(const RepositoryKey& key) {
  if (key.type == RepositoryType::model) return Address::of({key.owner(), key.name()});
  return Address::of({plural_of(key.type), key.owner(), key.name()});
}

std::string heading_of(RepositoryType type) {
  std::string heading(plural_of(type));
  heading[0] = static_cast<char>(heading[0] - 'a' + 'A');
  return heading;
}

}  // namespace neuron_kernels::hub::registry
