// Versions by Semantic Versioning 2.0.0 (semver.org), and ranges of them in the spelling and meaning of
// cargo.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuron_kernels::hub {

/// MAJOR.MINOR.PATCH[-pre][+build]; numbers up to `max_number`.
struct Version {
  static constexpr int max_number = 2'000'000'000;

  int major = 0, minor = 0, patch = 0;
  std::string pre, build;  // without their '-' and '+'

  /// Nothing unless the whole text is a version as the specification has it (no 'v', no leading zeros).
  static std::optional<Version> parse(std::string_view text);
  std::string text() const;

  /// Precedence: build does not count, so 1.0.0+a == 1.0.0+b.
  friend std::weak_ordering operator<=>(const Version& a, const Version& b);
  friend bool operator==(const Version& a, const Version& b) { return (a <=> b) == 0; }
};

/// All versions that fulfil every requirement of a list such as ">=1.2, <2".
/// A bare version means ^ (as in cargo): 1.2 is >=1.2.0, <2.0.0. A pre-release is inside only if a
/// requirement names a pre-release of the same MAJOR.MINOR.PATCH.
class Range {
 public:
  /// The forms that parse() takes, for messages.
  static constexpr std::string_view forms = "1, 1.2, 1.2.3, 1.2.*, ^1.2, ~1.2, =1.2.3, >=1 <2, >=1, <2, *";

  /// Every release and no pre-release, as "*".
  Range() = default;
  /// Errors: HubError usage with what was given and the allowed forms.
  static Range parse(std::string_view text);
  /// Exactly one version (its build does not count).
  static Range exactly(const Version& version);

  bool contains(const Version& version) const;
  /// Whether some version, existing or not, is inside both.
  bool intersects(const Range& other) const;
  /// The major number that all its versions have; nothing if they have several.
  std::optional<int> only_major() const;
  /// The requirements as they were written, joined by ", ".
  std::string text() const;

 private:
  struct Bound {
    Version version;
    bool inclusive = true;
  };

  void add(std::string_view op, std::string_view version, std::string_view all);
  void at_least(const Version& version, bool inclusive);
  void at_most(const Version& version, bool inclusive);
  bool inside(const Version& version) const;  // the bounds only
  bool admits_pre(const Version& version) const;
  bool has_release() const;
  bool has_pre(const Version& core) const;

  Bound low_{{0, 0, 0, "0", {}}};
  std::optional<Bound> high_;  // none: no upper bound
  std::vector<Version> pre_;   // requirements that name a pre-release
  std::vector<std::string> written_;
};

}  // namespace neuron_kernels::hub
