#include "hub/registry/store_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "hub/error.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub::registry {

namespace {

// Bytes of the file, each a lock. Everybody passes the gate alone and leaves it once he has the store: without
// it, sharers that follow each other would keep out for ever who wants it for himself.
constexpr off_t gate = 0, store = 1;

/// Of the open file, not of the process: threads exclude each other, too.
bool set_lock(int fd, off_t byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  while (::fcntl(fd, F_OFD_SETLKW, &lock) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

}  // namespace

StoreLock::StoreLock(const std::filesystem::path& root, Mode mode) {
  const std::filesystem::path path = root / "store.lock";
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  const bool held = file_ && set_lock(file_.get(), gate, F_WRLCK) &&
                    set_lock(file_.get(), store, mode == Mode::shared ? F_RDLCK : F_WRLCK) &&
                    set_lock(file_.get(), gate, F_UNLCK);
  if (!held) storage_error("lock", path, errno);
}

void StoreLock::share() { set_lock(file_.get(), store, F_RDLCK); }

Descriptor lock_or_conflict(const std::filesystem::path& file, const std::string& busy,
                            const std::string& hint) {
  Descriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) storage_error("write", file, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) storage_error("lock", file, errno);
  throw HubError(ErrorKind::conflict, busy, hint);
}

}  // namespace neuron_kernels::hub::registry
