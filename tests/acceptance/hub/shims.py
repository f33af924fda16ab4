"""Functions of libc that fail as file systems do: C sources for LD_PRELOAD."""

NO_LOCKS = "#include <errno.h>\nint flock(int f, int o) { (void)f; (void)o; errno = ENOLCK; return -1; }\n"
EMPTY_LOCKS = "int flock(int f, int o) { (void)f; (void)o; return 0; }\n"
NO_LINKS = """#include <errno.h>
int symlink(const char* a, const char* b) { (void)a; (void)b; errno = EPERM; return -1; }
"""
FULL_DISK = """#include <errno.h>
#include <sys/types.h>
ssize_t pwrite(int f, const void* b, size_t n, off_t at) {
  (void)f; (void)b;
  if (at > 1000000) { errno = ENOSPC; return -1; }
  extern ssize_t pwrite64(int, const void*, size_t, off_t);
  return pwrite64(f, b, n, at);
}
"""
