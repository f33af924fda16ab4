// The files in which git keeps the objects of one repository: one each when they are written, packs later.
//
// libgit2 packs them, not the program git: the server reads by the same library, it syncs what it writes, and
// housekeeping needs no program that a registry without `git clone` can do without.
#pragma once

#include <filesystem>
#include <vector>

#include "hub/registry/reachable.hpp"

namespace neuron_kernels::hub::registry {

struct LooseObject {
  git_oid id;
  std::filesystem::path file;
};

struct Pack {
  std::filesystem::path pack, index;  // an upload that sends an object of it again makes `pack` count as new
  OidSet objects;
};

std::vector<LooseObject> loose_objects(const std::filesystem::path& repository);

/// Those that git made no .keep file for. Errors: HubError storage for one that cannot be read.
std::vector<Pack> packs(const std::filesystem::path& repository);

/// Puts them into one pack, on the disk when this returns. Errors: HubError storage.
void write_pack(git_repository* repository, const std::vector<git_oid>& objects);

/// Files below `repository` that git or libgit2 or the server left unfinished, locks among them.
std::vector<std::filesystem::path> unfinished_files(const std::filesystem::path& repository);

}  // namespace neuron_kernels::hub::registry
