// Keys and signatures: what is signed is accepted, and every change to it is not.
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "catch.hpp"
#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/keys.hpp"
#include "hub/signature.hpp"
#include "temporary_folder.hpp"

using namespace neuron_kernels::hub;

namespace {

template <class Call>
std::string error_of(ErrorKind kind, Call&& call) {
  try {
    call();
  } catch (const HubError& error) {
    CHECK(error.kind == kind);
    return std::string(error.what()) + " " + error.hint;
  }
  return "no error";
}

}  // namespace

TEST_CASE("a private key is the user's alone and is never replaced") {
  const test::TemporaryFolder folder;
  const KeyStore store(folder.path() / "keys");
  CHECK(store.own().empty());
  const PublicKey key = store.create("work");
  struct stat status {};
  REQUIRE(::stat((folder.path() / "keys" / "work.key").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  REQUIRE(store.own().size() == 1);
  CHECK(store.own()[0].first == "work");
  CHECK(store.own()[0].second == key);
  CHECK(PublicKey::parse(key.text()) == key);
  CHECK_THAT(error_of(ErrorKind::conflict, [&] { store.create("work"); }), contains_text("never replaced"));
  CHECK_THAT(error_of(ErrorKind::usage, [&] { store.create("../x"); }), contains_text("allowed are"));
  CHECK_THAT(error_of(ErrorKind::not_found, [&] { store.sign("", "home"); }),
             contains_text("kernels key new home"));
  write_file(folder.path() / "keys" / "bad.key",
             "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
  CHECK_THAT(error_of(ErrorKind::integrity, [&] { store.own(); }), contains_text("bad.key"));
}

TEST_CASE("RFC 8032, test 2: one byte") {
  const PublicKey key{from_hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")};
  const std::string signature = from_hex(
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2e"
      "aeb4302aee"
      "b00d291612bb0c00");
  CHECK(key.verifies("\x72", signature));
  CHECK_FALSE(key.verifies("\x73", signature));
  CHECK_FALSE(key.verifies("\x72", signature.substr(1)));
}

TEST_CASE("keys are trusted for an owner until they are not") {
  const test::TemporaryFolder folder;
  const KeyStore store(folder.path());
  const PublicKey a = store.create("a"), b = store.create("b");
  CHECK(store.trust("org", a));
  CHECK_FALSE(store.trust("org", a));
  CHECK(store.trust("another", b));
  REQUIRE(store.trusted().size() == 2);
  CHECK(store.trusted()[0].owner == "another");
  CHECK(store.distrust("another", b));
  CHECK_FALSE(store.distrust("another", b));
  CHECK(store.trusted().size() == 1);
  for (const char* text : {"", "ed25519:", "ed25519:AAAA", "rsa:AAAA", "ed25519:****"}) {
    error_of(ErrorKind::usage, [&] { PublicKey::parse(text); });
  }
  write_file(folder.path() / "trusted.json", "[]");
  CHECK_THAT(error_of(ErrorKind::usage, [&] { store.trusted(); }), contains_text("trusted.json"));
}

TEST_CASE("a signature counts for exactly what was signed") {
  const test::TemporaryFolder folder;
  const KeyStore store(folder.path() / "keys");
  const PublicKey key = store.create("default");
  write_file(folder.path() / "v" / "__init__.py", "");
  write_file(folder.path() / "v" / "sub" / "a.hpp", "int x;\n");
  SignedVariant what{"scale", "1.2.3", "neuron-header", digest_list(folder.path() / "v")};
  REQUIRE(what.files.size() == 2);
  CHECK(what.files.at("__init__.py") == sha256_hex(""));
  const std::string document = sign(what, store, "default");
  CHECK_THAT(error_of(ErrorKind::integrity, [&] { verify(document, what, "org", store.trusted()); }),
             contains_text("kernels key trust org " + key.text()));
  store.trust("org", key);
  const auto trusted = store.trusted();
  CHECK(verify(document, what, "org", trusted) == key);
  const auto refused = [&](const std::string& text, const SignedVariant& held, const std::string& owner) {
    return error_of(ErrorKind::integrity, [&] { verify(text, held, owner, trusted); });
  };
  CHECK_THAT(refused(document, what, "other"), contains_text("not trusted for other"));

  SignedVariant changed = what;
  changed.version = "1.2.4";
  CHECK_THAT(refused(document, changed, "org"), contains_text("made for scale 1.2.3"));
  changed = what;
  changed.files["sub/a.hpp"] = sha256_hex("int y;\n");
  CHECK_THAT(refused(document, changed, "org"), contains_text("'sub/a.hpp' has SHA-256"));
  changed = what;
  changed.files["new.py"] = sha256_hex("");
  CHECK_THAT(refused(document, changed, "org"), contains_text("'new.py' was not signed"));
  changed = what;
  changed.files.erase("__init__.py");
  CHECK_THAT(refused(document, changed, "org"), contains_text("is missing"));

  // A list that was changed to fit changed files: the text that was signed is another one.
  changed = what;
  changed.files["sub/a.hpp"] = sha256_hex("int y;\n");
  auto forged = nlohmann::json::parse(document);
  forged["files"]["sub/a.hpp"] = changed.files["sub/a.hpp"];
  CHECK_THAT(refused(forged.dump(), changed, "org"), contains_text("does not match key"));
  for (std::size_t i = 0; i < document.size(); i += 7) {
    CHECK(refused(document.substr(0, i), what, "org") != "no error");
  }
}
