// What all pages of the registry share: the frame around them, their header fields, pages for errors, and the
// files that they load.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hub/registry/html.hpp"
#include "hub/registry/http_server.hpp"
#include "hub/registry/repositories.hpp"

namespace neuron_kernels::hub::registry {

/// In the order in which pages show them.
inline constexpr RepositoryType shown_types[] = {RepositoryType::kernel, RepositoryType::model,
                                                 RepositoryType::dataset, RepositoryType::space};

struct Page {
  std::string title;
  Html body;
  std::optional<RepositoryType> type{};  // the part of the site that it belongs to
  std::string search{};                  // what was searched for
};
Reply page_reply(const Page& page, int status = 200);

/// A page that says what is wrong. What must not be told apart looks the same: no repository, and a private
/// one.
Reply error_page(const HttpError& error);

/// What `begin` makes, where errors of either step become pages.
std::unique_ptr<Exchange> with_error_pages(const std::function<std::unique_ptr<Exchange>()>& begin);

Reply redirect_reply(const Address& target);

/// Whether what asks shows pages (a browser) and not data.
bool wants_page(const RequestHead& head);

/// An address below /_web. Errors: HttpError 404.
Reply asset_reply(const std::string& name, std::string_view if_none_match);

/// Which part of a long list a page shows; pages count from 1.
struct Paging {
  std::size_t page = 1, length = 50, total = 0;

  /// The page that `wanted` names, or the nearest one there is.
  Paging(std::string_view wanted, std::size_t page_length, std::size_t items);
  std::size_t first() const { return (page - 1) * length; }
  std::size_t end() const { return std::min(first() + length, total); }
  std::size_t pages() const { return std::max<std::size_t>((total + length - 1) / length, 1); }
};

/// Links to the pages before and after; empty if there is only one.
Html paging_links(const Paging& paging, const Address& here, std::string_view search = {});

Html label(std::string_view text);
/// The day of "2026-01-31T12:00:00.000Z".
Html date_of(std::string_view iso);
/// Where a repository's pages are: "/kernels/owner/name".
Address home_of(const RepositoryKey& key);
/// "Kernels"
std::string heading_of(RepositoryType type);

}  // namespace neuron_kernels::hub::registry
