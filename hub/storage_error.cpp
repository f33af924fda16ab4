#include "hub/storage_error.hpp"

#include <cerrno>
#include <cstring>

#include "hub/error.hpp"

namespace neuron_kernels::hub {

namespace {

std::string hint_of(int error, Storage storage) {
  const bool cache = storage == Storage::cache;
  if (error == ENOSPC || error == EDQUOT) {
    return cache ? "free space on that disk, or set HF_HUB_CACHE to another folder"
                 : "free space on that disk, or name another folder";
  }
  if (error == EROFS || error == EACCES || error == EPERM) {
    return cache ? "the cache is read-only: set HF_HUB_CACHE to a folder you may write"
                 : "check who may write there";
  }
  return {};
}

}  // namespace

void storage_error(const std::string& action, const std::filesystem::path& path, int error, Storage storage) {
  const bool absent = error == ENOENT && storage == Storage::folder;
  throw HubError(absent ? ErrorKind::not_found : ErrorKind::storage,
                 "cannot " + action + " " + path.string() + ": " + std::strerror(error),
                 hint_of(error, storage));
}

}  // namespace neuron_kernels::hub
