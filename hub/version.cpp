#include "hub/version.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "hub/error.hpp"
#include "hub/text.hpp"

namespace neuron_kernels::hub {
namespace {

constexpr std::string_view digits = "0123456789";
constexpr std::string_view identifier_characters =
    "0123456789-ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of(digits) == text.npos;
}

std::optional<int> parse_number(std::string_view text) {
  if (!all_digits(text) || (text.size() > 1 && text.front() == '0')) return {};
  int value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || value > Version::max_number) return {};
  return value;
}

bool valid_identifiers(std::string_view text, bool leading_zeros) {
  for (const std::string_view part : split(text, '.')) {
    if (part.empty() || part.find_first_not_of(identifier_characters) != part.npos) return false;
    if (!leading_zeros && part.size() > 1 && part.front() == '0' && all_digits(part)) return false;
  }
  return true;
}

std::weak_ordering compare_identifiers(std::string_view a, std::string_view b) {
  const bool a_numeric = all_digits(a), b_numeric = all_digits(b);
  if (a_numeric != b_numeric) return a_numeric ? std::weak_ordering::less : std::weak_ordering::greater;
  if (a_numeric && a.size() != b.size()) return a.size() <=> b.size();  // they have no leading zeros
  return a.compare(b) <=> 0;
}

std::weak_ordering compare_pre(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.empty() <=> b.empty();  // a release is above its pre-releases
  const auto as = split(a, '.'), bs = split(b, '.');
  for (std::size_t i = 0; i < std::min(as.size(), bs.size()); ++i) {
    if (const auto order = compare_identifiers(as[i], bs[i]); order != 0) return order;
  }
  return as.size() <=> bs.size();
}

Version release(int major, int minor, int patch) { return {major, minor, patch, {}, {}}; }

// The lowest version with these numbers: below every other pre-release of them.
Version lowest(int major, int minor, int patch) { return {major, minor, patch, "0", {}}; }

bool same_core(const Version& a, const Version& b) {
  return a.major == b.major && a.minor == b.minor && a.patch == b.patch;
}

// A version whose last numbers may be left out or be a wildcard.
struct Partial {
  int numbers = 0;        // how many are given
  bool wildcard = false;  // 1.2.* and not 1.2
  Version version;        // the others are 0
};

std::optional<Partial> parse_partial(std::string_view text) {
  if (auto version = Version::parse(text)) return Partial{3, false, *version};
  Partial partial;
  const auto parts = split(text, '.');
  if (parts.size() > 3) return {};
  int* const numbers[] = {&partial.version.major, &partial.version.minor, &partial.version.patch};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool wildcard = parts[i] == "*" || parts[i] == "x" || parts[i] == "X";
    partial.wildcard = partial.wildcard || wildcard;
    if (wildcard) continue;
    const auto number = parse_number(parts[i]);
    if (!number || partial.wildcard) return {};
    *numbers[i] = *number;
    ++partial.numbers;
  }
  return partial;
}

// The lowest version above all that share the first `numbers` numbers of `v`.
Version after(const Version& v, int numbers) {
  if (numbers <= 1) return lowest(v.major + 1, 0, 0);
  if (numbers == 2) return lowest(v.major, v.minor + 1, 0);
  return lowest(v.major, v.minor, v.patch + 1);
}

// What ^ keeps: up to the leftmost number that is not 0, or all that are given.
int caret_numbers(const Partial& p) {
  if (p.version.major != 0 || p.numbers <= 1) return 1;
  if (p.version.minor != 0 || p.numbers == 2) return 2;
  return 3;
}

}  // namespace

std::optional<Version> Version::parse(std::string_view text) {
  Version version;
  if (const std::size_t plus = text.find('+'); plus != text.npos) {
    version.build = text.substr(plus + 1);
    if (!valid_identifiers(version.build, true)) return {};
    text = text.substr(0, plus);
  }
  if (const std::size_t minus = text.find('-'); minus != text.npos) {
    version.pre = text.substr(minus + 1);
    if (!valid_identifiers(version.pre, false)) return {};
    text = text.substr(0, minus);
  }
  const auto parts = split(text, '.');
  if (parts.size() != 3) return {};
  const auto major = parse_number(parts[0]), minor = parse_number(parts[1]), patch = parse_number(parts[2]);
  if (!major || !minor || !patch) return {};
  version.major = *major;
  version.minor = *minor;
  version.patch = *patch;
  return version;
}

std::string Version::text() const {
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(patch) +
         (pre.empty() ? "" : '-' + pre) + (build.empty() ? "" : '+' + build);
}

std::weak_ordering operator<=>(const Version& a, const Version& b) {
  if (const auto order = a.major <=> b.major; order != 0) return order;
  if (const auto order = a.minor <=> b.minor; order != 0) return order;
  if (const auto order = a.patch <=> b.patch; order != 0) return order;
  return compare_pre(a.pre, b.pre);
}

Range Range::parse(std::string_view text) {
  constexpr std::string_view operators = "^~=<>", blanks = " \t";
  const auto refuse = [&](const std::string& why) {
    throw HubError(ErrorKind::usage, "version range '" + std::string(text.substr(0, 200)) + "': " + why,
                   "allowed are " + std::string(forms));
  };
  Range range;
  bool wants_requirement = true;  // at the start and after a comma
  for (std::size_t at = 0;;) {
    at = std::min(text.find_first_not_of(blanks, at), text.size());
    if (at == text.size()) break;
    if (text[at] == ',') {
      if (wants_requirement) refuse("a comma with no requirement before it");
      wants_requirement = true;
      ++at;
      continue;
    }
    const std::size_t op_end = std::min(text.find_first_not_of(operators, at), text.size());
    const std::string_view op = text.substr(at, op_end - at);
    const std::size_t begin = std::min(text.find_first_not_of(blanks, op_end), text.size());
    const std::size_t end = std::min(text.find_first_of(" \t,^~=<>", begin), text.size());
    range.add(op, text.substr(begin, end - begin), text);
    wants_requirement = false;
    at = end;
  }
  if (wants_requirement) refuse(range.written_.empty() ? "it is empty" : "it ends in a comma");
  return range;
}

Range Range::exactly(const Version& version) { return parse("=" + version.text()); }

void Range::add(std::string_view op, std::string_view version, std::string_view all) {
  const auto refuse = [&](const std::string& why) {
    throw HubError(ErrorKind::usage, "version range '" + std::string(all.substr(0, 200)) + "': " + why,
                   "allowed are " + std::string(forms));
  };
  const auto p = parse_partial(version);
  if (!p) refuse("'" + std::string(version.substr(0, 100)) + "' is not a version of one to three numbers");
  const Version& v = p->version;
  const bool whole = p->numbers == 3;
  const Version first =
      whole ? v : lowest(v.major, v.minor, v.patch);  // of those that share the given numbers
  if (p->numbers == 0) {
    if (op == "<" || op == ">") refuse("no version is " + std::string(op) + "*");
  } else if (op == "^" || (op.empty() && !p->wildcard)) {
    at_least(first, true);
    at_most(after(v, caret_numbers(*p)), false);
  } else if (op == "~") {
    at_least(first, true);
    at_most(after(v, std::min(p->numbers, 2)), false);
  } else if (op == "=" || op.empty()) {
    at_least(first, true);
    at_most(whole ? v : after(v, p->numbers), whole);
  } else if (op == ">=") {
    at_least(first, true);
  } else if (op == "<") {
    at_most(first, false);
  } else if (op == ">") {
    at_least(whole ? v : after(v, p->numbers), !whole);
  } else if (op == "<=") {
    at_most(whole ? v : after(v, p->numbers), whole);
  } else {
    refuse("'" + std::string(op) + "' is not one of ^ ~ = < <= > >=");
  }
  if (!v.pre.empty()) pre_.push_back(v);
  written_.push_back(std::string(op) + std::string(version));
}

void Range::at_least(const Version& version, bool inclusive) {
  const auto order = version <=> low_.version;
  if (order > 0 || (order == 0 && !inclusive)) low_ = {version, inclusive};
}

void Range::at_most(const Version& version, bool inclusive) {
  if (!high_) {
    high_ = Bound{version, inclusive};
    return;
  }
  const auto order = version <=> high_->version;
  if (order < 0 || (order == 0 && !inclusive)) high_ = Bound{version, inclusive};
}

bool Range::inside(const Version& version) const {
  const auto above = version <=> low_.version;
  if (above < 0 || (above == 0 && !low_.inclusive)) return false;
  if (!high_) return true;
  const auto below = version <=> high_->version;
  return below < 0 || (below == 0 && high_->inclusive);
}

bool Range::admits_pre(const Version& version) const {
  return std::any_of(pre_.begin(), pre_.end(), [&](const Version& p) { return same_core(p, version); });
}

bool Range::contains(const Version& version) const {
  return inside(version) && (version.pre.empty() || admits_pre(version));
}

bool Range::intersects(const Range& other) const {
  Range both = *this;
  both.at_least(other.low_.version, other.low_.inclusive);
  if (other.high_) both.at_most(other.high_->version, other.high_->inclusive);
  if (both.has_release()) return true;
  return std::any_of(pre_.begin(), pre_.end(),
                     [&](const Version& p) { return other.admits_pre(p) && both.has_pre(p); });
}

bool Range::has_release() const {  // the lowest one that is not below low_
  const Version& v = low_.version;
  const bool next = v.pre.empty() && !low_.inclusive;
  return inside(release(v.major, v.minor, v.patch + (next ? 1 : 0)));
}

bool Range::has_pre(const Version& core) const {
  const Version& v = low_.version;
  const Version first = lowest(core.major, core.minor, core.patch);
  if (v < first) return inside(first);
  if (!same_core(v, core) || v.pre.empty()) return false;
  // The next pre-release after "p" is "p.0".
  return inside(low_.inclusive ? v : Version{v.major, v.minor, v.patch, v.pre + ".0", {}});
}

std::optional<int> Range::only_major() const {
  const int major = low_.version.major;
  if (intersects(parse(">" + std::to_string(major)))) return {};
  return major;
}

std::string Range::text() const { return written_.empty() ? "*" : joined(written_); }

}  // namespace neuron_kernels::hub
