// Routes about who there is: whoami, organisations; and figures for Prometheus.
#include "hub/registry/service.hpp"

namespace neuron_kernels::hub::registry {

using json = nlohmann::ordered_json;

std::unique_ptr<Exchange> Service::whoami(const Call& call) {
  if (call.who.anonymous()) throw HttpError{401, "Invalid username or password.", {}, {}};
  return without_body([who = call.who] {
    json organisations = json::array();
    for (const std::string& name : who.organisations) {
      organisations.push_back({{"type", "org"},
                               {"id", "o-" + name},
                               {"name", name},
                               {"fullname", name},
                               {"roleInOrg", who.token.write ? "write" : "read"}});
    }
    const json token{{"displayName", who.token.name},
                     {"role", who.token.write ? "write" : "read"},
                     {"createdAt", who.token.created}};
    return Reply::json(json{{"type", "user"},
                            {"id", "u-" + who.name},
                            {"name", who.name},
                            {"fullname", who.name},
                            {"email", nullptr},
                            {"emailVerified", true},
                            {"isPro", false},
                            {"canPay", false},
                            {"avatarUrl", ""},
                            {"periodEnd", nullptr},
                            {"orgs", organisations},
                            {"auth", {{"type", "access_token"}, {"accessToken", token}}}}
                           .dump());
  });
}

std::unique_ptr<Exchange> Service::organisation_overview(const std::string& name) {
  return without_body([this, name] {
    const auto found = accounts_.organisation(name);
    if (!found) throw HttpError{404, "This organization does not exist", {}, {}};
    return Reply::json(json{
        {"name", name},
        {"fullname", name},
        {"avatarUrl", ""},
        {"isVerified", false},
        {"numUsers", found->members.size()},
        {"trustedKernelPublisher",
         found->trusted}}.dump());
  });
}

std::unique_ptr<Exchange> Service::metrics() {
  return without_body([this] {
    std::string text;
    const auto figure = [&](const char* name, const char* type, const char* help, std::uint64_t value) {
      text += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n" + name +
              " " + std::to_string(value) + "\n";
    };
    figure("kernels_requests_total", "counter", "Requests since the start.", requests_);
    figure("kernels_requests_refused_total", "counter", "Requests beyond the rate limit.", refused_);
    figure("kernels_repositories", "gauge", "Repositories of all types.", repositories_.count());
    return Reply::of("text/plain; version=0.0.4; charset=utf-8", std::move(text));
  });
}

}  // namespace neuron_kernels::hub::registry
