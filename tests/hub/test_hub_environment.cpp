// Which variable wins, and what a token or an endpoint may hold.
#include <fstream>
#include <map>
#include <string>

#include "catch.hpp"
#include "hub/environment.hpp"
#include "hub/error.hpp"
#include "temporary_folder.hpp"

using neuron_kernels::hub::Environment;
using neuron_kernels::hub::HubError;
namespace hub = neuron_kernels::hub;

namespace {

using Variables = std::map<std::string, std::string>;

Environment read(const Variables& variables) {
  return hub::read_environment({}, [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("endpoint and folders have the defaults of the Python tools") {
  const Environment plain = read({{"HOME", "/home/me"}});
  CHECK(plain.endpoint == "https://huggingface.co");
  CHECK(plain.home == "/home/me/.cache/huggingface");
  CHECK(plain.cache == "/home/me/.cache/huggingface/hub");
  CHECK(plain.token_path == "/home/me/.cache/huggingface/token");
  CHECK(plain.token.empty());
  CHECK_FALSE(plain.offline);
  CHECK(plain.symlinks);
  CHECK(read({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).home == "/x/huggingface");
  CHECK(read({{"HOME", "/h"}, {"HF_HOME", "~/hf"}}).home == "/h/hf");
  CHECK_THROWS_WITH(read({}), contains_text("HF_HOME"));
}

TEST_CASE("the cache folder that is most special wins") {
  Variables variables{{"HF_HOME", "/hf"}, {"HUGGINGFACE_HUB_CACHE", "/old"}};
  CHECK(read(variables).cache == "/old");
  variables["HF_HUB_CACHE"] = "/new";
  CHECK(read(variables).cache == "/new");
  variables["KERNELS_CACHE"] = "/kernels";
  CHECK(read(variables).cache == "/kernels");
  variables["KERNELS_CACHE"] = "";
  CHECK(read(variables).cache == "/new");
}

TEST_CASE("an endpoint loses its slashes and must be a URL") {
  CHECK(read({{"HF_HOME", "/h"}, {"HF_ENDPOINT", " http://host:81/prefix// "}}).endpoint ==
        "http://host:81/prefix");
  for (const char* bad : {"host", "ftp://host", "http://", "https://a b", "http://h?x"}) {
    CHECK_THROWS_WITH(read({{"HF_HOME", "/h"}, {"HF_ENDPOINT", bad}}), contains_text("not a URL"));
  }
}

TEST_CASE("the order of tokens") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "token") << " from-file \n";
  Variables variables{{"HF_HOME", folder.path().string()}};
  CHECK(read(variables).token == "from-file");
  variables["HUGGING_FACE_HUB_TOKEN"] = "old";
  CHECK(read(variables).token == "old");
  variables["HF_TOKEN"] = "new\n";
  CHECK(read(variables).token == "new");
  CHECK(read(variables).token_source == "HF_TOKEN");
  variables["HF_TOKEN"] = "  ";
  CHECK(read(variables).token == "old");
  variables["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1";
  CHECK(read(variables).token.empty());
}

TEST_CASE("a token that no header can carry is refused and not shown") {
  for (const char* bad : {"se cret", "se\ncret", "secr\xc3\xa9t"}) {
    try {
      read({{"HF_HOME", "/h"}, {"HF_TOKEN", bad}});
      FAIL("accepted");
    } catch (const HubError& error) {
      CHECK(error.kind == hub::ErrorKind::usage);
      CHECK(std::string(error.what()).find("cret") == std::string::npos);
    }
  }
}

TEST_CASE("switches take the four true words in any case") {
  for (const char* yes : {"1", "ON", "yes", "True"}) CHECK(hub::is_true(yes));
  for (const char* no : {"0", "off", "", "2", "truely"}) CHECK_FALSE(hub::is_true(no));
  CHECK_FALSE(hub::is_true(nullptr));
  CHECK(read({{"HF_HOME", "/h"}, {"TRANSFORMERS_OFFLINE", "true"}}).offline);
  CHECK_FALSE(read({{"HF_HOME", "/h"}, {"HF_HUB_DISABLE_SYMLINKS", "1"}}).symlinks);
  CHECK(read({{"HF_HOME", "/h"}}).symlinks_warning);
  CHECK_FALSE(read({{"HF_HOME", "/h"}, {"HF_HUB_DISABLE_SYMLINKS_WARNING", "1"}}).symlinks_warning);
  const Environment quiet = read({{"HF_HOME", "/h"}, {"DO_NOT_TRACK", "1"}});
  CHECK(quiet.user_agent().find("platform") == std::string::npos);
  CHECK(read({{"HF_HOME", "/h"}}).user_agent().find("; platform/") != std::string::npos);
  CHECK(read({{"HF_HOME", "/h"}, {"HF_HUB_DOWNLOAD_TIMEOUT", "30"}}).idle_timeout.count() == 30);
  CHECK(read({{"HF_HOME", "/h"}, {"HF_HUB_DOWNLOAD_TIMEOUT", "soon"}}).idle_timeout.count() == 10);
}
