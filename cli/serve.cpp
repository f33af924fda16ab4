// kernels serve: the registry.
#include <csignal>
#include <cstdio>
#include <memory>

#include "cli/serve.hpp"
#include "hub/error.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace neuron_kernels::cli {

namespace {

/// Splits "ADDRESS:PORT".
void set_address(const std::string& listen, hub::registry::ServerOptions& server) {
  const std::size_t colon = listen.rfind(':');
  const std::string port = colon == listen.npos ? "" : listen.substr(colon + 1);
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != port.npos ||
      std::stoi(port) > 65535) {
    throw hub::HubError(hub::ErrorKind::usage, "--listen is '" + listen + "'; expected ADDRESS:PORT",
                        "for example --listen 127.0.0.1:8085");
  }
  server.address = listen.substr(0, colon);
  server.port = static_cast<std::uint16_t>(std::stoi(port));
}

/// What is said in several options at once, or has a form that CLI11 does not check.
void check(ServeOptions& options) {
  set_address(options.listen, options.server);
  if (options.server.certificate_file.empty() != options.server.key_file.empty()) {
    throw hub::HubError(hub::ErrorKind::usage, "--cert and --key go together; only one of them was given");
  }
  if (!options.rate.empty()) options.limits.rate = hub::registry::rate_of(options.rate);
  if (options.part_mib > 0) {
    options.limits.part_bytes = static_cast<std::uint64_t>(options.part_mib) << 20;
    options.limits.multipart_from_bytes = options.limits.part_bytes + 1;
  }
  std::string& url = options.server.public_url;
  while (url.ends_with('/')) url.pop_back();
  if (!url.empty() && !url.starts_with("http://") && !url.starts_with("https://")) {
    throw hub::HubError(
        hub::ErrorKind::usage,
        "--public-url is '" + url + "'; expected an address that starts with http:// or https://",
        "for example --public-url https://hub.example.org");
  }
}

void serve(ServeOptions& options) {
  check(options);
  // Before any thread: they all inherit the mask, and only sigwait() below takes these signals.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
#if defined(__GLIBC__)
  mallopt(M_ARENA_MAX, 2);  // threads are many and short of work: memory that one frees is another's
#endif

  hub::registry::Service service(options.root, options.limits);
  if (!service.writable()) {
    std::fprintf(stderr, "note: %s is read-only; changes are refused\n", options.root.c_str());
  }
  hub::registry::HttpServer server(options.server, service);
  const char* scheme = options.server.certificate_file.empty() ? "http" : "https";
  std::printf("%s://%s:%u\n", scheme, options.server.address.c_str(), static_cast<unsigned>(server.port()));
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  std::fprintf(stderr, "stopping: running transfers may end within %d s\n", options.grace_s);
  server.stop(options.grace_s);
}

void add_server_options(CLI::App& command, ServeOptions& options) {
  hub::registry::ServerOptions& server = options.server;
  command.add_option("--cert", server.certificate_file, "PEM file of a certificate and its chain, for HTTPS");
  command.add_option("--key", server.key_file, "PEM file of its key");
  command.add_option("--public-url", server.public_url,
                     "address at which clients reach the server; by default as each one names it");
  command
      .add_option("--trusted-proxy", server.trusted_proxies,
                  "address of a proxy whose X-Forwarded-For is believed; may be repeated")
      ->allow_extra_args(false)
      ->check(CLI::ValidIPV4);
  command.add_option("--rate-limit", options.rate,
                     "REQUESTS/SECONDS of each token, or of each address without one; by default no limit");
  const auto add_number = [&](const char* name, auto& number, int most, const char* help) {
    command.add_option(name, number, help)->capture_default_str()->check(CLI::Range(1, most));
  };
  constexpr int hour_s = 3600;
  add_number("--header-deadline", server.deadlines.header_s, hour_s,
             "seconds in which the header of a request must be there");
  add_number("--idle-deadline", server.deadlines.idle_s, hour_s,
             "seconds without a byte after which a connection ends");
  add_number("--least-rate", server.deadlines.least_bytes_per_s, 1 << 30,
             "bytes/s that a client must send or take, on average over each --header-deadline");
  command
      .add_option("--part-mib", options.part_mib,
                  "MiB that a request of an LFS upload may have; larger files come in parts")
      ->check(CLI::Range(1, 1024));
  command.add_option("--grace", options.grace_s, "seconds that running transfers get at the end")
      ->capture_default_str()
      ->check(CLI::Range(0, hour_s));
}

}  // namespace

void add_serve(CLI::App& app, Global& global) {
  CLI::App* command = app.add_subcommand("serve", serve_description);
  auto options = std::make_shared<ServeOptions>();
  command->add_option("--root", options->root, "folder of the registry; made if it is not there")->required();
  command->add_option("--listen", options->listen, "ADDRESS:PORT; port 0 takes any free one")
      ->capture_default_str();
  add_server_options(*command, *options);
  command->require_subcommand(0, 1);
  command->fallthrough();
  add_account_commands(*command, options, global);
  add_store_commands(*command, options, global);
  command->callback([command, options] {
    if (command->get_subcommands().empty()) serve(*options);
  });
  add_examples(*command,
               "  kernels serve --root registry user add alice\n"
               "  kernels serve --root registry token add alice > token\n"
               "  kernels serve --root registry --listen 127.0.0.1:8085\n"
               "  kernels serve --root registry gc\n"
               "  kernels serve --root registry backup registry.tar\n");
}

}  // namespace neuron_kernels::cli
