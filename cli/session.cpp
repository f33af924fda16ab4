#include "cli/session.hpp"

#include <cstdio>
#include <map>

namespace neuron_kernels::cli {

void add_hub_options(CLI::App& command, HubOptions& options) {
  command.add_option("--endpoint", options.endpoint, "URL of the hub (HF_ENDPOINT; https://huggingface.co)");
  command.add_option("--cache", options.cache, "Cache folder (KERNELS_CACHE, HF_HUB_CACHE)");
  command.add_flag("--offline", options.offline, "No network: only what is in the cache (HF_HUB_OFFLINE)");
  command.add_option("--retries", options.retries, "Tries after the first without progress")
      ->capture_default_str()
      ->check(CLI::Range(0, 20));
}

hub::Environment environment_of(const HubOptions& options) {
  hub::Environment environment = hub::read_environment(options.endpoint);
  if (options.cache) environment.cache = *options.cache;
  if (options.offline) environment.offline = true;
  return environment;
}

namespace {

hub::HttpOptions http_options(const HubOptions& options, const hub::Environment& environment,
                              const Global& global) {
  return {.user_agent = environment.user_agent(),
          .parallel = options.parallel,
          .retries = options.retries,
          .connect_timeout = environment.connect_timeout,
          .idle_timeout = environment.idle_timeout,
          .on_notice = [&global](const std::string& text) { notice(global, text); }};
}

}  // namespace

Session::Session(const HubOptions& options, const Global& global)
    : environment_(environment_of(options)),
      http_(http_options(options, environment_, global)),
      api_(environment_, http_) {}

void notice(const Global& global, const std::string& text) {
  if (!global.quiet) std::fprintf(stderr, "note: %s\n", text.c_str());
}

void print(const nlohmann::json& document) {
  const std::string text = document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

void add_type_option(CLI::App& command, hub::RepoType& type) {
  const std::map<std::string, hub::RepoType> types{{"kernel", hub::RepoType::kernel},
                                                   {"model", hub::RepoType::model},
                                                   {"dataset", hub::RepoType::dataset}};
  command.add_option("--type", type, "Type of the repository: kernel, model or dataset")
      ->transform(CLI::CheckedTransformer(types, CLI::ignore_case).description(""))
      ->option_text("TYPE");
}

}  // namespace neuron_kernels::cli
