// Markup that cannot hold unescaped text: it is made of literals, and of values that are escaped on the way in.
//
//   html("<a href=\"{}\">{}</a>", Address::of({owner, name}), title)
//
// A form is checked when it is compiled: as many values as places, attributes in quotes, an Address and
// nothing else where a browser follows it.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace neuron_kernels::hub::registry {

/// A path of this server, with its parts and parameters percent-encoded.
class Address {
 public:
  using Parameters = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  /// "/": the root.
  Address() = default;
  /// "/a/b" of the parts a and b.
  static Address of(std::initializer_list<std::string_view> parts);
  /// This path with one part more.
  Address operator/(std::string_view part) const;
  /// This path with the parts of a file's path more; itself if `path` is empty.
  Address below(std::string_view path) const;
  /// This path with those parameters whose value is not empty.
  Address with(Parameters parameters) const;

  const std::string& text() const { return text_; }

 private:
  std::string text_ = "/";
};

class Html {
 public:
  Html() = default;
  Html& operator+=(const Html& more) {
    markup_ += more.markup_;
    return *this;
  }
  bool empty() const { return markup_.empty(); }
  const std::string& markup() const { return markup_; }

 private:
  explicit Html(std::string markup) : markup_(std::move(markup)) {}
  std::string markup_;
  friend class FormWriter;    // html() below
  friend class CardRenderer;  // markdown.cpp: the other place that makes markup
};

template <class T>
concept FormText = std::convertible_to<const T&, std::string_view>;
template <class T>
concept FormValue = FormText<T> || std::integral<T> || std::same_as<T, Html> || std::same_as<T, Address>;

/// A literal with a place {} for each of Values.
template <class... Values>
class Form {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): literals become forms where html() is called
  consteval Form(const char* literal) : text_(literal) {
    constexpr std::size_t count = sizeof...(Values);
    constexpr bool is_markup[] = {std::same_as<Values, Html>..., false};
    constexpr bool is_address[] = {std::same_as<Values, Address>..., false};
    std::size_t place = 0, attribute = 0;
    enum { in_text, in_tag, in_value } where = in_text;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '{') {
        if (!text_.substr(i).starts_with("{}")) error("a brace that is no place {}");
        if (place == count) error("more places {} than values");
        if (where == in_tag) error("a place in a tag must be inside of double quotes");
        if (where == in_value && is_markup[place]) error("markup as the value of an attribute");
        if (where == in_value && is_followed(attribute) && !(is_address[place] && text_[i - 1] == '"'))
          error("href, src and action begin with an Address");
        ++place;
      } else if (where == in_text && c == '<') {
        where = in_tag;
      } else if (where == in_tag && c == '>') {
        where = in_text;
      } else if (where == in_tag && (c == ' ' || c == '\n')) {
        attribute = i + 1;
      } else if (c == '"' && where != in_text) {
        where = where == in_tag ? in_value : in_tag;
      }
    }
    if (place < count) error("more values than places {}");
    if (where != in_text) error("a tag that does not end");
  }
  std::string_view text() const { return text_; }

 private:
  consteval bool is_followed(std::size_t attribute) const {
    const std::string_view rest = text_.substr(attribute);
    return rest.starts_with("href=") || rest.starts_with("src=") || rest.starts_with("action=");
  }
  static void error(const char*) {}  // not constexpr: calling it ends the compilation

  std::string_view text_;
};

/// Fills the places of a form one after another.
class FormWriter {
 public:
  explicit FormWriter(std::string_view form) : form_(form) {}
  void put(std::string_view value);  // escaped; what is no UTF-8, and control characters, become U+FFFD
  void put(const Html& value);
  void put(const Address& value) { put(std::string_view(value.text())); }
  void put(std::integral auto value) { put(std::string_view(std::to_string(value))); }
  Html finish();

 private:
  void to_next_place();
  std::string_view form_;
  std::string markup_;
};

template <FormValue... Values>
Html html(Form<std::type_identity_t<Values>...> form, const Values&... values) {
  FormWriter writer(form.text());
  (writer.put(values), ...);
  return writer.finish();
}

}  // namespace neuron_kernels::hub::registry
