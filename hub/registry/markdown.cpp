#include "hub/registry/markdown.hpp"

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <vector>

#include "hub/registry/utf8.hpp"

namespace neuron_kernels::hub::registry {

namespace {

constexpr int options = CMARK_OPT_DEFAULT | CMARK_OPT_VALIDATE_UTF8;  // not _UNSAFE

struct FreeParser {
  void operator()(cmark_parser* parser) const { cmark_parser_free(parser); }
};
struct FreeNode {
  void operator()(cmark_node* node) const { cmark_node_free(node); }
};
struct FreeText {
  void operator()(char* text) const { std::free(text); }
};
using Parser = std::unique_ptr<cmark_parser, FreeParser>;
using Node = std::unique_ptr<cmark_node, FreeNode>;
using CText = std::unique_ptr<char, FreeText>;

Parser new_parser() {
  static const bool once = [] {
    cmark_gfm_core_extensions_ensure_registered();
    return true;
  }();
  static_cast<void>(once);
  Parser parser(cmark_parser_new(options));
  for (const char* name : {"table", "autolink", "strikethrough", "tasklist"}) {
    cmark_parser_attach_syntax_extension(parser.get(), cmark_find_syntax_extension(name));
  }
  return parser;
}

Node parse(cmark_parser* parser, std::string_view text) {
  cmark_parser_feed(parser, text.data(), text.size());
  return Node(cmark_parser_finish(parser));
}

std::string_view text_of(const char* text) { return text != nullptr ? text : std::string_view(); }

/// The nodes of a document that `wanted` names, parents before children.
template <class Wanted>
std::vector<cmark_node*> nodes_of(cmark_node* document, const Wanted& wanted) {
  std::vector<cmark_node*> found;
  cmark_iter* iterator = cmark_iter_new(document);
  while (cmark_iter_next(iterator) != CMARK_EVENT_DONE) {
    cmark_node* node = cmark_iter_get_node(iterator);
    if (cmark_iter_get_event_type(iterator) == CMARK_EVENT_ENTER && wanted(node)) {
      found.push_back(node);
    }
  }
  cmark_iter_free(iterator);
  return found;
}

void drop(cmark_node* node) {
  cmark_node_unlink(node);
  cmark_node_free(node);
}

void move_children(cmark_node* from, cmark_node* to) {
  while (cmark_node* child = cmark_node_first_child(from)) cmark_node_append_child(to, child);
}

/// Leaves what is in a node and takes the node away.
void unwrap(cmark_node* node) {
  while (cmark_node* child = cmark_node_first_child(node)) cmark_node_insert_before(node, child);
  drop(node);
}

/// A block with markup of our own around it; takes the place of `node`.
cmark_node* replace_by_block(cmark_node* node, const std::string& begin, const std::string& end) {
  cmark_node* block = cmark_node_new(CMARK_NODE_CUSTOM_BLOCK);
  cmark_node_set_on_enter(block, begin.c_str());
  cmark_node_set_on_exit(block, end.c_str());
  cmark_node_insert_before(node, block);
  return block;
}

template <cmark_node_type... types>
constexpr auto is_one_of = [](cmark_node* node) {
  const cmark_node_type type = cmark_node_get_type(node);
  return ((type == types) || ...);
};
/// Its type has a number only when the program runs.
bool is_table(cmark_node* node) { return text_of(cmark_node_get_type_string(node)) == "table"; }

enum class Target { page, elsewhere, relative, refused };

Target target_of(std::string_view url) {
  if (url.starts_with("//")) return Target::elsewhere;
  if (url.starts_with('#') || url.starts_with('/')) return Target::page;
  const std::size_t colon = url.find(':');
  if (colon == url.npos || url.find_first_of("/?#") < colon) return Target::relative;
  std::string scheme(url.substr(0, colon));
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return scheme == "http" || scheme == "https" || scheme == "mailto" ? Target::elsewhere : Target::refused;
}

bool is_in_link(cmark_node* node) {
  while ((node = cmark_node_parent(node)) != nullptr) {
    if (cmark_node_get_type(node) == CMARK_NODE_LINK) return true;
  }
  return false;
}

/// What a heading says as part of an address, as GitHub makes it; it holds no character of markup.
std::string slug_of(cmark_node* heading) {
  std::string slug;
  for (cmark_node* node : nodes_of(heading, is_one_of<CMARK_NODE_TEXT, CMARK_NODE_CODE>)) {
    for (const char c : text_of(cmark_node_get_literal(node))) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x80 && std::isalnum(byte) != 0) slug += static_cast<char>(std::tolower(byte));
      if (c == ' ' || c == '-') slug += '-';
      if (c == '_' || byte >= 0x80) slug += c;
    }
  }
  return is_utf8(slug) ? slug : std::string();
}

/// Whether `text` stays small when it is parsed. What cmark makes of these grows with the square of the text:
/// markers of lists and quotations, each of which a blank line visits; uses of a long reference.
bool is_tame(std::string_view text) {
  constexpr std::size_t most_markers = 100, most_referred_bytes = std::size_t{64} << 20;
  std::size_t brackets = 0, paragraph = 0, longest_paragraph = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::string_view lead = line.substr(0, line.find_first_not_of(" \t>-+*.)0123456789"));
    std::size_t markers = 0;
    for (std::size_t i = 0; i < lead.size(); ++i) {
      const bool spaced = i + 1 < lead.size() && (lead[i + 1] == ' ' || lead[i + 1] == '\t');
      if (lead[i] == '>' || (spaced && std::string_view("-+*.)").find(lead[i]) != text.npos)) ++markers;
    }
    if (markers > most_markers) return false;
    brackets += static_cast<std::size_t>(std::count(line.begin(), line.end(), '['));
    paragraph = line.find_first_not_of(" \t>") == line.npos ? 0 : paragraph + line.size();
    longest_paragraph = std::max(longest_paragraph, paragraph);
    begin = end + (text.substr(end).starts_with("\r\n") ? 2 : 1);
  }
  return brackets * longest_paragraph <= most_referred_bytes;
}

}  // namespace

/// Turns one document into markup.
class CardRenderer {
 public:
  explicit CardRenderer(const Address& home)
      : pages_((home / "blob" / "main").text() + "/"), files_((home / "resolve" / "main").text() + "/") {}

  Html render(std::string_view text) const {
    if (!is_tame(text)) return html("<pre>{}</pre>", text);
    const Parser parser = new_parser();
    const Node document = parse(parser.get(), text);
    for (cmark_node* node :
         nodes_of(document.get(), is_one_of<CMARK_NODE_HTML_BLOCK, CMARK_NODE_HTML_INLINE>))
      drop(node);
    for (cmark_node* node : nodes_of(document.get(), is_one_of<CMARK_NODE_IMAGE>)) settle_image(node);
    for (cmark_node* node : nodes_of(document.get(), is_one_of<CMARK_NODE_LINK>)) settle_link(node);
    for (cmark_node* node : nodes_of(document.get(), is_one_of<CMARK_NODE_HEADING>)) settle_heading(node);
    for (cmark_node* node : nodes_of(document.get(), is_table)) {
      cmark_node* block = replace_by_block(node, R"(<div class="scroll" tabindex="0">)", "</div>");
      cmark_node_append_child(block, node);
    }
    const CText markup(
        cmark_render_html(document.get(), options, cmark_parser_get_syntax_extensions(parser.get())));
    return Html(std::string(markup.get()));
  }

 private:
  /// A picture of this repository stays; one from elsewhere becomes a link to it, or its words.
  void settle_image(cmark_node* image) const {
    const std::string url(text_of(cmark_node_get_url(image)));
    const Target target = target_of(url);
    if (target == Target::relative && !url.empty()) {
      cmark_node_set_url(image, (files_ + url).c_str());
    } else if (target == Target::elsewhere && !is_in_link(image) &&
               cmark_node_first_child(image) != nullptr) {
      cmark_node* link = cmark_node_new(CMARK_NODE_LINK);
      cmark_node_set_url(link, url.c_str());
      cmark_node_insert_before(image, link);
      move_children(image, link);
      drop(image);
    } else {
      unwrap(image);
    }
  }

  void settle_link(cmark_node* link) const {
    const std::string url(text_of(cmark_node_get_url(link)));
    const Target target = target_of(url);
    if (target == Target::refused || url.empty()) return unwrap(link);
    if (target == Target::relative) cmark_node_set_url(link, (pages_ + url).c_str());
    if (url.starts_with('#')) cmark_node_set_url(link, ("#card-" + url.substr(1)).c_str());
  }

  /// One level lower, since the page has a title of its own, and a place that links lead to.
  static void settle_heading(cmark_node* heading) {
    const std::string level = std::to_string(std::min(cmark_node_get_heading_level(heading) + 1, 6));
    cmark_node* block = replace_by_block(heading, "<h" + level + " id=\"card-" + slug_of(heading) + "\">",
                                         "</h" + level + ">");
    move_children(heading, block);
    drop(heading);
  }

  std::string pages_, files_;
};

Card read_card(std::string_view readme, const Address& home) {
  Card card;
  card.front = take_front_matter(readme);
  if (readme.size() > Card::most_bytes) {
    card.cut = true;
    readme = readme.substr(0, Card::most_bytes);
    readme = readme.substr(0, readme.rfind('\n'));
  }
  card.body = CardRenderer(home).render(readme);
  return card;
}

std::string card_summary(std::string_view readme) {
  constexpr std::size_t most_read = 4096, most_shown = 200;
  take_front_matter(readme);
  readme = readme.substr(0, most_read);
  if (!is_tame(readme)) return {};
  const Node document = parse(new_parser().get(), readme);
  cmark_node* block = cmark_node_first_child(document.get());
  while (block != nullptr && cmark_node_get_type(block) != CMARK_NODE_PARAGRAPH)
    block = cmark_node_next(block);
  if (block == nullptr) return {};
  std::string summary;
  for (cmark_node* node :
       nodes_of(block, is_one_of<CMARK_NODE_TEXT, CMARK_NODE_CODE, CMARK_NODE_SOFTBREAK>)) {
    const std::string_view literal = text_of(cmark_node_get_literal(node));
    summary += literal.empty() ? " " : literal;
  }
  if (summary.size() <= most_shown) return summary;
  const std::size_t blank = summary.rfind(' ', most_shown);
  summary.resize(blank != summary.npos ? blank : 0);
  return summary + " …";
}

}  // namespace neuron_kernels::hub::registry
