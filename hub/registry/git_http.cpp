#include "hub/registry/git_http.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub::registry {

namespace {

/// Runs git with files as stdin and stdout. Errors: HttpError 501 without git, 500 if git fails.
void run_git(std::vector<std::string> arguments, const std::string& protocol, int in, int out) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  // Nothing of this process's environment but the path: a repository's owner must not reach its settings.
  std::string path =
      std::string("PATH=") + (std::getenv("PATH") != nullptr ? std::getenv("PATH") : "/usr/bin:/bin");
  std::string version = "GIT_PROTOCOL=" + protocol, config = "GIT_CONFIG_NOSYSTEM=1",
              home = "HOME=/nonexistent";
  // The repository belongs to whoever runs the server, or to another user of a restored backup.
  std::string count = "GIT_CONFIG_COUNT=1", key = "GIT_CONFIG_KEY_0=safe.directory",
              value = "GIT_CONFIG_VALUE_0=*";
  char* const environment[] = {path.data(),  version.data(), config.data(), home.data(),
                               count.data(), key.data(),     value.data(),  nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t none;  // the server blocks the signals that end it; git must not
  sigemptyset(&none);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, "git", &actions, &attributes, argv.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0)
    throw HttpError{501, "git is not installed on this server, so repositories cannot be cloned", {}, {}};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw HttpError{500, "git upload-pack failed on this request", {}, {}};
  }
}

std::string packet_line(const std::string& text) {
  char length[5];
  std::snprintf(length, sizeof length, "%04zx", text.size() + 4);
  return length + text;
}

Fields no_cache(const char* type) {
  return {{"Content-Type", type}, {"Cache-Control", "no-cache, max-age=0, must-revalidate"}};
}

/// The protocol versions that git has; anything else is dropped rather than handed to a process.
std::string known_protocol(const std::string& field) {
  return field == "version=2" || field == "version=1" ? field : std::string();
}

}  // namespace

Reply advertise_refs(const std::filesystem::path& repository, const std::string& service,
                     const std::string& protocol, const std::filesystem::path& temporary_folder) {
  if (service != "git-upload-pack") {
    throw HttpError{
        403, "this server lets git read only; push by `kernels push` or the Hub protocol", {}, {}};
  }
  TemporaryFile out(temporary_folder / "git-advertisement");
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  run_git({"git", "upload-pack", "--stateless-rpc", "--advertise-refs", repository.string()},
          known_protocol(protocol), nothing.get(), out.fd());
  Reply reply;
  reply.fields = no_cache("application/x-git-upload-pack-advertisement");
  reply.body = packet_line("# service=git-upload-pack\n") + "0000" + read_file(out.path());
  return reply;
}

Reply upload_pack(const std::filesystem::path& repository, const std::string& request,
                  const std::string& protocol, const std::filesystem::path& temporary_folder) {
  TemporaryFile in(temporary_folder / "git-request"), out(temporary_folder / "git-pack");
  in.write(bytes_of(request));
  ::lseek(in.fd(), 0, SEEK_SET);
  run_git({"git", "upload-pack", "--stateless-rpc", repository.string()}, known_protocol(protocol), in.fd(),
          out.fd());
  Reply reply;
  reply.fields = no_cache("application/x-git-upload-pack-result");
  struct stat status {};
  reply.file = Descriptor(::open(out.path().c_str(), O_RDONLY | O_CLOEXEC));
  if (!reply.file || ::fstat(reply.file.get(), &status) != 0) {
    storage_error("read the pack", out.path(), errno);
  }
  reply.file_bytes = static_cast<std::uint64_t>(status.st_size);
  return reply;
}

std::string gunzipped(const std::string& packed, std::size_t most_bytes) {
  z_stream stream{};
  constexpr int gzip_window_bits = 16 + MAX_WBITS;
  if (inflateInit2(&stream, gzip_window_bits) != Z_OK) throw HubError(ErrorKind::failed, "zlib cannot start");
  std::string content;
  char piece[1 << 14];
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  int result = Z_OK;
  while (result == Z_OK && content.size() <= most_bytes) {
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof piece;
    result = inflate(&stream, Z_NO_FLUSH);
    content.append(piece, sizeof piece - stream.avail_out);
  }
  inflateEnd(&stream);
  if (content.size() > most_bytes) {
    throw HttpError{413, "the request unpacks to more than " + std::to_string(most_bytes) + " bytes", {}, {}};
  }
  if (result != Z_STREAM_END) throw HttpError{400, "the request is not a whole gzip stream", {}, {}};
  return content;
}

}  // namespace neuron_kernels::hub::registry
