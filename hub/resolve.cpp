#include "hub/resolve.hpp"

#include <algorithm>
#include <optional>

#include "hub/error.hpp"

namespace neuron_kernels::hub {
namespace {

constexpr int most_steps = 100'000;

struct Request {
  Dependency wants;
  std::string by;  // repository; empty: the caller
};

class Search {
 public:
  Search(const std::vector<Dependency>& wanted, PackageSource& source, const Resolution& preferred)
      : source_(source), preferred_(preferred) {
    for (const Dependency& one : wanted) requests_.push_back({one, ""});
  }

  Resolution run() {
    if (!extend(0)) throw HubError(ErrorKind::incompatible, *conflict_, hint);
    return chosen_;
  }

 private:
  static constexpr const char* hint =
      "widen one of these ranges, or ask the owner of a package in between for a version that agrees";

  // Decides the requests from `first` on; leaves chosen_ and requests_ as they were if that is impossible.
  bool extend(std::size_t first) {
    while (first < requests_.size() && chosen_.contains(requests_[first].wants.repository)) ++first;
    if (first == requests_.size()) return true;
    const std::string repository = requests_[first].wants.repository;
    const std::size_t before = requests_.size();
    for (const Version& version : candidates(repository)) {
      if (++steps_ > most_steps) {
        throw HubError(
            ErrorKind::usage,
            "resolving versions took more than " + std::to_string(most_steps) + " steps; " + *conflict_,
            "narrow the ranges in [dependencies]");
      }
      chosen_.emplace(repository, version);
      if (add_requests_of(repository, version) && extend(first + 1)) return true;
      chosen_.erase(repository);
      requests_.resize(before);
    }
    return false;
  }

  // Those that every request so far allows, best first.
  std::vector<Version> candidates(const std::string& repository) {
    std::vector<Version> fit;
    for (const Version& version : versions(repository)) {
      if (allowed(repository, version)) fit.push_back(version);
    }
    if (const auto wish = preferred_.find(repository); wish != preferred_.end()) {
      std::stable_partition(fit.begin(), fit.end(), [&](const Version& v) { return v == wish->second; });
    }
    if (fit.empty()) explain(repository);
    return fit;
  }

  bool allowed(const std::string& repository, const Version& version) const {
    return std::all_of(requests_.begin(), requests_.end(), [&](const Request& r) {
      return r.wants.repository != repository || r.wants.range.contains(version);
    });
  }

  // False, with the reason in conflict_, if they contradict what is chosen or leave some package without a
  // version.
  bool add_requests_of(const std::string& repository, const Version& version) {
    for (const Dependency& one : dependencies(repository, version)) requests_.push_back({one, repository});
    for (const Dependency& one : dependencies(repository, version)) {
      const auto held = chosen_.find(one.repository);
      const bool possible =
          held != chosen_.end() ? one.range.contains(held->second) : !candidates(one.repository).empty();
      if (possible) continue;
      explain(one.repository);
      return false;
    }
    return true;
  }

  const std::vector<Version>& versions(const std::string& repository) {
    const auto [at, is_new] = versions_.try_emplace(repository);
    if (is_new) {
      at->second = source_.versions(repository);
      std::sort(at->second.begin(), at->second.end(),
                [](const Version& a, const Version& b) { return b < a; });
    }
    return at->second;
  }

  const std::vector<Dependency>& dependencies(const std::string& repository, const Version& version) {
    const auto [at, is_new] = dependencies_.try_emplace(repository + "@" + version.text());
    if (is_new) at->second = source_.dependencies(repository, version);
    return at->second;
  }

  // The first conflict is kept: it is met with the highest versions, which is what a person expects to be
  // taken.
  void explain(const std::string& repository) {
    if (conflict_) return;
    std::string text = "no version of " + repository + " is all that is asked for:";
    for (const Request& r : requests_) {
      if (r.wants.repository == repository) text += "\n  " + r.wants.range.text() + " by " + chain(r.by);
    }
    std::string list;
    for (const Version& v : versions(repository)) list += (list.empty() ? "" : ", ") + v.text();
    conflict_ = text + "\n  there is " + (list.empty() ? "no version at all" : list);
  }

  // "org/b 2.0.0 (^2 by org/a 1.0.0 (^1 by this package))"
  std::string chain(const std::string& by) const {
    std::string head, tail;
    for (std::string at = by; !at.empty();) {
      const auto request = std::find_if(requests_.begin(), requests_.end(),
                                        [&](const Request& r) { return r.wants.repository == at; });
      head += at + " " + chosen_.at(at).text() + " (" + request->wants.range.text() + " by ";
      tail += ")";
      at = request->by;
    }
    return head + "this package" + tail;
  }

  PackageSource& source_;
  const Resolution& preferred_;
  std::vector<Request> requests_;
  Resolution chosen_;
  std::map<std::string, std::vector<Version>> versions_;         // highest first
  std::map<std::string, std::vector<Dependency>> dependencies_;  // by "repository@version"
  std::optional<std::string> conflict_;
  int steps_ = 0;
};

}  // namespace

Resolution resolve(const std::vector<Dependency>& wanted, PackageSource& source,
                   const Resolution& preferred) {
  return Search(wanted, source, preferred).run();
}

}  // namespace neuron_kernels::hub
