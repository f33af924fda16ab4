#include "hub/compile.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/process.hpp"
#include "hub/text.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

constexpr unsigned most_compilers = 2;        // one of these files can take a gibibyte
constexpr std::size_t longest_report = 6000;  // of a compiler, in an error

void run_compiler(const std::vector<std::string>& command, const std::string& what) {
  Finished finished = run_program(command, Capture::output_and_errors);
  if (finished.status == 0) return;
  if (finished.status == 127) {
    throw HubError(ErrorKind::failed, "cannot start the compiler '" + command[0] + "'",
                   "install g++ 12 or newer, or set CXX");
  }
  if (finished.output.size() > longest_report) finished.output.resize(longest_report);
  throw HubError(ErrorKind::failed, "cannot compile " + what + " (status " + std::to_string(finished.status) +
                                        "): " + joined(command, " ") + "\n" + finished.output);
}

}  // namespace

void compile(const SharedLibrary& library, const std::function<void(const std::string&)>& on_progress) {
  const std::vector<std::string> compiler = words_of_variable("CXX", "g++");
  std::vector<std::string> flags{"-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden",
                                 "-ffile-prefix-map=" + library.root.string() + "=."};
  flags.push_back("-I" + library.root.string());
  for (const std::string& folder : library.include) flags.push_back("-I" + (library.root / folder).string());
  for (const fs::path& folder : library.system_include)
    flags.insert(flags.end(), {"-isystem", folder.string()});
  flags.insert(flags.end(), library.flags.begin(), library.flags.end());
  for (const std::string& flag : words_of_variable("CXXFLAGS", "")) flags.push_back(flag);

  const fs::path objects = library.output.string() + ".objects";
  make_folders(objects);
  std::vector<std::string> object_files;
  for (std::size_t i = 0; i < library.sources.size(); ++i) {
    object_files.push_back((objects / (std::to_string(i) + ".o")).string());
  }
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < library.sources.size(); i = next++) {
      try {
        {
          const std::lock_guard lock(mutex);
          if (failure) return;
          on_progress("compiling " + library.sources[i]);
        }
        std::vector<std::string> command = compiler;
        command.insert(command.end(), flags.begin(), flags.end());
        command.insert(command.end(),
                       {"-c", (library.root / library.sources[i]).string(), "-o", object_files[i]});
        run_compiler(command, library.sources[i]);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  {
    const unsigned count = std::clamp(std::thread::hardware_concurrency(), 1u, most_compilers);
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < count; ++i) threads.emplace_back(work);
  }
  if (!failure) {
    std::vector<std::string> command = compiler;
    command.insert(command.end(), object_files.begin(), object_files.end());
    // C++ symbols stay inside, those of the standard library's templates too, which ask to be seen: two
    // versions of a library in one process must not share them.
    write_file(objects / "symbols", "{ local: _Z*; _end; _edata; __bss_start; };\n");
    command.insert(command.end(), {"-shared", "-Wl,-z,now", "-Wl,--build-id=none",
                                   "-Wl,--version-script=" + (objects / "symbols").string()});
    command.insert(command.end(), library.link.begin(), library.link.end());
    command.insert(command.end(), {"-o", library.output.string()});
    try {
      run_compiler(command, library.output.filename().string());
    } catch (...) {
      failure = std::current_exception();
    }
  }
  fs::remove_all(objects);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace neuron_kernels::hub
