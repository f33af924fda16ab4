// Headers, waits that a server asks for, links between pages, and errors without secrets.
#include <string>

#include "catch.hpp"
#include "hub/api.hpp"
#include "hub/api_error.hpp"
#include "hub/http.hpp"

namespace hub = neuron_kernels::hub;

namespace {

std::int64_t wait(const char* name, const char* value) {
  hub::Headers headers;
  headers.add(name, value);
  return hub::wait_asked_for(headers, 784'111'777).count();  // Sun, 06 Nov 1994 08:49:37 GMT
}

hub::HubError error(int status, const char* code, const char* body, const char* token_source = "HF_TOKEN") {
  hub::Response response;
  response.status = status;
  response.url = "https://me:secret@host/api/x?Signature=secret";
  if (*code != '\0') response.headers.add("x-error-code", code);
  response.body = body;
  return hub::api_error(response, "kernel o/n", token_source);
}

}  // namespace

TEST_CASE("header names compare without case") {
  hub::Headers headers;
  headers.add("ETag", "a");
  headers.add("etag", "b");
  CHECK(headers.get("ETAG") == "b");
  CHECK(headers.has("eTag"));
  CHECK(headers.get("Link").empty());
}

TEST_CASE("waits that a server asks for") {
  CHECK(wait("Retry-After", "7") == 7);
  CHECK(wait("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT") == 10);
  CHECK(wait("Retry-After", "Sun, 06 Nov 1994 08:49:27 GMT") == 0);
  CHECK(wait("Retry-After", "soon") == -1);
  CHECK(wait("RateLimit", "\"api\";r=0;t=55") == 55);
  CHECK(wait("Other", "1") == -1);
}

TEST_CASE("the next page is the link with rel=next") {
  CHECK(hub::next_link("<http://h/a?cursor=1>; rel=\"next\"") == "http://h/a?cursor=1");
  CHECK(hub::next_link("<http://h/x>; rel=\"xet-auth\", <http://h/b>; rel=\"next\"") == "http://h/b");
  CHECK(hub::next_link("<http://h/x>; rel=\"prev\"").empty());
  CHECK(hub::next_link("").empty());
  CHECK(hub::next_link("<http://h/x").empty());
}

TEST_CASE("answers become errors of a kind") {
  using hub::ErrorKind;
  CHECK(error(401, "RepoNotFound", "", "").kind == ErrorKind::not_found);
  CHECK(error(401, "", "").kind == ErrorKind::auth);
  CHECK(error(403, "GatedRepo", "").kind == ErrorKind::auth);
  CHECK(error(404, "EntryNotFound", "").kind == ErrorKind::not_found);
  CHECK(error(409, "", "").kind == ErrorKind::conflict);
  CHECK(error(412, "", "").kind == ErrorKind::conflict);
  CHECK(error(429, "", "").kind == ErrorKind::network);
  CHECK(error(503, "", "<html>").kind == ErrorKind::network);
  CHECK(error(400, "", "{\"error\":\"bad\"}").kind == ErrorKind::failed);
  CHECK_THAT(error(401, "", "").what(), contains_text("HF_TOKEN"));
  CHECK_THAT(error(403, "", "", "").hint, contains_text("no token was sent"));
}

TEST_CASE("errors hold what the server says and no secrets") {
  const hub::HubError shown = error(400, "", "{\"error\":\"bad\\nthing hf_abcdefgh123 here\"}");
  CHECK_THAT(shown.what(), contains_text("bad thing hf_... here"));
  CHECK(shown.url == "https://host/api/x");
  CHECK(shown.status == 400);
  CHECK_THAT(error(500, "", "<html>oops</html>").what(), contains_text("HTTP 500"));
  CHECK(std::string(error(400, "", std::string(5000, 'x').c_str()).what()).size() < 500);
}

TEST_CASE("a body of text can be read again from any offset") {
  const hub::Body body = hub::Body::json("0123456789");
  CHECK(body.size == 10);
  std::byte buffer[4];
  CHECK(body.read(0, buffer) == 4);
  CHECK(body.read(8, buffer) == 2);
  CHECK(static_cast<char>(buffer[0]) == '8');
  CHECK(body.read(2, buffer) == 4);
  CHECK(static_cast<char>(buffer[0]) == '2');
}
