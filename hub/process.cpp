#include "hub/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "hub/error.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::hub {
namespace {

class Actions {
 public:
  Actions() { posix_spawn_file_actions_init(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

Finished run_program(const std::vector<std::string>& arguments, Capture capture) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw HubError(ErrorKind::failed, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  Actions actions;
  posix_spawn_file_actions_addopen(actions.get(), 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), to.get(), 1);
  if (capture == Capture::output_and_errors) {
    posix_spawn_file_actions_adddup2(actions.get(), to.get(), 2);
  } else {
    posix_spawn_file_actions_addopen(actions.get(), 2, "/dev/null", O_WRONLY, 0);
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawnp(&child, argv[0], actions.get(), nullptr, argv.data(), environ);
  to.reset();
  if (error == EAGAIN || error == ENOMEM) {
    throw HubError(ErrorKind::failed, "cannot start " + arguments[0] + ": " + std::strerror(error));
  }
  if (error != 0) return {127, arguments[0] + ": " + std::strerror(error) + "\n"};
  Finished finished;
  char buffer[1 << 14];
  while (true) {
    const ssize_t n = ::read(from.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    finished.output.append(buffer, static_cast<std::size_t>(n));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

std::vector<std::string> words_of_variable(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  std::istringstream stream(value != nullptr ? value : "");
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.empty() && !otherwise.empty()) words.push_back(otherwise);
  return words;
}

}  // namespace neuron_kernels::hub
