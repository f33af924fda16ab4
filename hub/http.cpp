#include "hub/http.hpp"

#include <curl/curl.h>
#include <fcntl.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "hub/files.hpp"
#include "hub/http_engine.hpp"
#include "hub/storage_error.hpp"
#include "neuron_kernels/version.hpp"

namespace neuron_kernels::hub {

namespace {

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string_view Headers::get(std::string_view name) const {
  for (auto field = fields_.rbegin(); field != fields_.rend(); ++field) {
    if (same_name(field->first, name)) return field->second;
  }
  return {};
}

bool Headers::has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& field) { return same_name(field.first, name); });
}

Body Body::text(std::string content, std::string type) {
  const auto shared = std::make_shared<const std::string>(std::move(content));
  return {.size = shared->size(),
          .type = std::move(type),
          .read = [shared](std::uint64_t offset, std::span<std::byte> dst) {
            const std::size_t n = std::min(dst.size(), shared->size() - static_cast<std::size_t>(offset));
            std::memcpy(dst.data(), shared->data() + offset, n);
            return n;
          }};
}

Body Body::file(const std::filesystem::path& path, std::uint64_t offset, std::uint64_t size,
                std::string type) {
  const auto file = std::make_shared<const Descriptor>(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!*file) storage_error("read", path, errno);
  return {.size = size,
          .type = std::move(type),
          .read = [file, path, start = offset](std::uint64_t at, std::span<std::byte> dst) {
            ssize_t n = -1;
            do {
              n = ::pread(file->get(), dst.data(), dst.size(), static_cast<off_t>(start + at));
            } while (n < 0 && errno == EINTR);
            if (n < 0) storage_error("read", path, errno);
            return static_cast<std::size_t>(n);
          }};
}

std::string HttpOptions::default_user_agent() {
  return "neuron-kernels/" + std::string(version) + "; libcurl/" +
         curl_version_info(CURLVERSION_NOW)->version;
}

Http::Http(HttpOptions options) : engine_(std::make_unique<Engine>(std::move(options))) {}
Http::~Http() = default;

Response Http::send(Request request) {
  Result result;
  engine_->add(std::move(request), [&](Result answer) { result = std::move(answer); });
  engine_->run({});
  if (result.error != nullptr) std::rethrow_exception(result.error);
  return std::move(result.response);
}

void Http::add(Request request, Done done) { engine_->add(std::move(request), std::move(done)); }
void Http::run(const Turn& turn) { engine_->run(turn); }
int Http::requests() const { return engine_->requests(); }

std::chrono::seconds wait_asked_for(const Headers& headers, std::int64_t now_unix_s) {
  const std::string limit(headers.get("RateLimit"));
  if (const std::size_t at = limit.find(";t="); at != limit.npos) {
    return std::chrono::seconds(std::max(0L, std::atol(limit.c_str() + at + 3)));
  }
  const std::string after(headers.get("Retry-After"));
  if (after.empty()) return std::chrono::seconds(-1);
  if (after.find_first_not_of("0123456789") == after.npos)
    return std::chrono::seconds(std::atol(after.c_str()));
  const std::int64_t date = curl_getdate(after.c_str(), nullptr);
  return std::chrono::seconds(date < 0 ? -1 : std::max<std::int64_t>(0, date - now_unix_s));
}

}  // namespace neuron_kernels::hub
