// Names of repositories and revisions, URLs, and what of them may stand in messages.
#include <string>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/repository.hpp"
#include "hub/url.hpp"

namespace hub = neuron_kernels::hub;

TEST_CASE("a reference is a name and a revision") {
  const hub::Reference reference = hub::parse_reference("org/name@^1.2");
  CHECK(reference.repo.text() == "org/name");
  CHECK(reference.revision == "^1.2");
  CHECK(reference.repo.api_path() == "kernels/org/name");
  CHECK(reference.repo.file_path() == "kernels/org/name");
  CHECK(reference.repo.cache_folder() == "kernels--org--name");
  CHECK(hub::parse_reference("org/name").revision.empty());
  CHECK(hub::parse_reference("org/name@>=1 <2").revision == ">=1 <2");
  CHECK(hub::parse_reference("org/name@refs/heads/v1").revision == "refs/heads/v1");
  CHECK(hub::parse_reference("https://host/kernels/org/name@1").repo.text() == "org/name");
  CHECK(hub::parse_repo_id("a/b", hub::RepoType::model).file_path() == "a/b");
}

TEST_CASE("names that no repository can have are refused") {
  for (const char* bad : {"", "name", "/name", "org/", "a/b/c", "../x", "a/..", "a/b--c", "a/.b", "a/b c",
                          "a/b\n", "org/name@", "org/name@a b", "a/\xc3\xa9"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(hub::parse_reference(bad), hub::HubError);
  }
}

TEST_CASE("paths are percent-encoded once") {
  CHECK(hub::encode_path("a b/#?%41+&.txt") == "a%20b/%23%3F%2541%2B%26.txt");
  CHECK(hub::encode_segment("refs/heads/v1") == "refs%2Fheads%2Fv1");
  CHECK(hub::encode_segment("\xc3\xa9") == "%C3%A9");
}

TEST_CASE("an origin is scheme, host and port") {
  CHECK(hub::origin_of("HTTP://Host/a") == "http://host:80");
  CHECK(hub::origin_of("https://h") == "https://h:443");
  CHECK(hub::origin_of("http://h:81/x") != hub::origin_of("http://h/x"));
  CHECK(hub::origin_of("http://h/x") != hub::origin_of("https://h/x"));
  CHECK_THROWS_AS(hub::origin_of("ftp://h/x"), hub::HubError);
  CHECK(hub::resolve_url("http://h/a/b?c", "/d") == "http://h/d");
  CHECK(hub::resolve_url("http://h/a/b", "https://other/x?y=1") == "https://other/x?y=1");
}

TEST_CASE("messages show no secrets of a URL") {
  CHECK(hub::url_without_secrets("https://me:secret@host/p?Signature=x#f") == "https://host/p");
  CHECK(hub::url_without_secrets("http://h/a@b") == "http://h/a@b");
}
