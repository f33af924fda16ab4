// A kernel of a package becomes a Program: a small program around its program function is compiled and called.
//
// The compiled program is kept in the package's build folder under the digest of the compiler's command and of all
// that it reads (its preprocessed text), so that it is as new as its headers.
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/chip.hpp"
#include "cli/session.hpp"
#include "hub/digest.hpp"
#include "hub/files.hpp"
#include "hub/process.hpp"
#include "hub/text.hpp"
#include "neuron_kernels/record/json.hpp"

namespace neuron_kernels::cli {
namespace {

namespace fs = std::filesystem;
using hub::ErrorKind;
using hub::HubError;

constexpr const char* kept_in = "build/kernels-programs";  // of the package

/// The first line of a compiler's output that says "error".
std::string first_error(const std::string& output) {
  const std::size_t at = output.find("error:");
  if (at == output.npos) return output.substr(0, output.find('\n'));
  const std::size_t begin = output.rfind('\n', at) + 1;
  return output.substr(begin, output.find('\n', at) - begin);
}

std::string run_compiler(const std::vector<std::string>& command, const std::string& kernel) {
  hub::Finished finished = hub::run_program(command, hub::Capture::output_and_errors);
  if (finished.status == 127) {
    throw HubError(ErrorKind::failed, "cannot start the compiler '" + command[0] + "'",
                   "install g++ 12 or newer, or set CXX");
  }
  if (finished.status != 0) {
    throw HubError(ErrorKind::failed,
                   "cannot compile the program of kernel " + kernel + ": " + first_error(finished.output),
                   "all that the compiler says: " + hub::joined(command, " "));
  }
  return finished.output;
}

/// Removes what was compiled from older headers.
void keep_only(const fs::path& program, const std::string& kernel) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(program.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kernel + "-") && entry.path() != program) fs::remove(entry.path(), error);
  }
}

/// The compiled program, made if there is none yet.
fs::path compiled(const fs::path& package, const hub::Manifest::Kernel& kernel, const Global& global) {
  const hub::Manifest manifest = hub::Manifest::read(package);
  const fs::path folder = package / kept_in, source = folder / (kernel.name + ".cpp");
  const std::string text =
      "#include \"" + kernel.program_header +
      "\"\n#include \"neuron_kernels/programs/driver.hpp\"\n\nint main(int argc, char** argv) { "
      "return neuron_kernels::answer_command(argc, argv, &" +
      kernel.program + "); }\n";
  std::error_code missing;
  if (!fs::exists(source, missing) || hub::read_file(source) != text) hub::write_file(source, text);
  std::vector<std::string> command = hub::words_of_variable("CXX", "g++");
  command.insert(command.end(), {"-std=c++20", "-O0", "-I" + package.string()});
  if (manifest.header) command.push_back("-I" + (package / manifest.header->include).string());
  command.push_back("-I" + include_folder());
  for (const std::string& flag : hub::words_of_variable("CXXFLAGS", "")) command.push_back(flag);
  command.push_back(source.string());

  std::vector<std::string> preprocess = command;
  preprocess.push_back("-E");
  const std::string key = hub::joined(command, " ") + "\n" + run_compiler(preprocess, kernel.name);
  const fs::path program = folder / (kernel.name + "-" + hub::sha256_hex(key).substr(0, 16));
  if (fs::exists(program, missing)) return program;
  if (!global.quiet) std::fprintf(stderr, "compiling the program of kernel %s\n", kernel.name.c_str());
  const fs::path partial = program.string() + ".partial";
  command.insert(command.end(), {"-o", partial.string()});
  run_compiler(command, kernel.name);
  fs::rename(partial, program);
  keep_only(program, kernel.name);
  return program;
}

}  // namespace

std::string include_folder() {
  const char* given = std::getenv("NEURON_KERNELS_INCLUDE");
  if (given != nullptr && *given != '\0') return given;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& folder :
       {program.parent_path().parent_path() / "include", fs::path(NEURON_KERNELS_HEADERS)}) {
    if (fs::exists(folder / "neuron_kernels" / "version.hpp", error)) return folder.string();
  }
  throw HubError(ErrorKind::failed, "the headers of neuron_kernels are not in ../include of the program",
                 "name their folder in NEURON_KERNELS_INCLUDE");
}

Answer record_from_package(const std::string& package, const hub::Manifest::Kernel& kernel,
                           const std::string& chip, const std::string& dtype,
                           const std::map<std::string, std::string>& shape, const Global& global) {
  std::vector<std::string> command{compiled(fs::canonical(package), kernel, global).string(), chip, dtype};
  for (const auto& [name, value] : shape) command.push_back(value.empty() ? name : name + "=" + value);
  const hub::Finished finished = hub::run_program(command, hub::Capture::output);
  if (finished.status == 1 || finished.status == 2) {
    throw HubError(finished.status == 2 ? ErrorKind::usage : ErrorKind::failed,
                   finished.output.substr(0, finished.output.find_last_not_of('\n') + 1));
  }
  if (finished.status != 0) {
    throw HubError(ErrorKind::failed, "the program of kernel " + kernel.name + " ended with status " +
                                          std::to_string(finished.status) + ": " + hub::joined(command, " "));
  }
  const auto other = [&](const std::exception& error) {
    return HubError(
        ErrorKind::failed,
        "kernel " + kernel.name + " wrote something else to stdout than its program: " + error.what(),
        "print to stderr");
  };
  record::Json document;
  try {
    document = record::parsed(finished.output);
  } catch (const ProgramError& error) {
    throw other(error);
  }
  try {
    Answer answer;
    answer.useful_flops = static_cast<double>(document.at("useful_flops").get<float>());
    answer.reference = document.at("reference").get<std::string>();
    for (const record::Json& p : document.at("parameters"))
      answer.parameters.push_back({p.at("name").get<std::string>(), p.at("otherwise").get<std::string>(),
                                   p.at("help").get<std::string>()});
    answer.program = record::program_of(document.at("program"));
    return answer;
  } catch (const ProgramError& error) {
    throw HubError(ErrorKind::failed, "kernel " + kernel.name + ": " + error.what());
  } catch (const record::Json::exception& error) {
    throw other(error);
  }
}

void add_include(CLI::App& app, Global& global) {
  CLI::App* command = app.add_subcommand("include", include_description);
  add_examples(*command, "  g++ -std=c++20 -I \"$(kernels include)\" -I include tests/test_scale.cpp");
  command->callback([&global] {
    const std::string folder = include_folder();
    if (global.json) return print(nlohmann::json{{"include", folder}});
    std::printf("%s\n", folder.c_str());
  });
}

}  // namespace neuron_kernels::cli
