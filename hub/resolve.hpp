// Chooses one version of each package that is needed, directly or by way of others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hub/manifest.hpp"
#include "hub/version.hpp"

namespace neuron_kernels::hub {

/// Where versions come from: a hub, a cache, or a test. Each question is asked once per call of resolve().
class PackageSource {
 public:
  virtual ~PackageSource() = default;
  /// All versions, in any order. Errors: HubError not_found if there is no such repository.
  virtual std::vector<Version> versions(const std::string& repository) = 0;
  virtual std::vector<Dependency> dependencies(const std::string& repository, const Version& version) = 0;
};

using Resolution = std::map<std::string, Version>;  // by repository

/// One version for each repository in `wanted` and for all that those need, so that every range is kept.
/// The highest version that leads to a solution is taken, package by package in the order of `wanted`; one in
/// `preferred` (a lock file's) goes before higher ones. Circles are fine.
/// errors: HubError incompatible, with who asks for what; usage if the search takes more than 100,000 steps
/// cost: exponential at worst, linear where the highest versions agree
Resolution resolve(const std::vector<Dependency>& wanted, PackageSource& source,
                   const Resolution& preferred = {});

}  // namespace neuron_kernels::hub
