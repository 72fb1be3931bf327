// The client of the real project is tested against these answers in
// testing/e2e/vault_socket_test.go.
#include "services/agent/vault/vault_api.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

constexpr absl::Time kNow = absl::FromUnixSeconds(1'750'000'000);
constexpr char kToken[] = "s.00112233";

class VaultApiTest : public ::testing::Test {
 protected:
  static VaultApi Make() {
    std::vector<VaultApiSecret> secrets;
    secrets.push_back({.name = "db", .version = 3, .value = Secret("hunter22")});
    secrets.push_back({.name = "key", .version = 1, .value = Secret("\xff\x01")});
    secrets.push_back({.name = "user", .version = 7, .value = Secret("ada \"x\"\n")});
    return VaultApi({.token = kToken,
                     .job = "j1",
                     .deployment = "d1",
                     .created = kNow,
                     .expires = kNow + absl::Minutes(5),
                     .secrets = std::move(secrets)});
  }
  VaultApiAnswer Call(std::string_view method, std::string_view target,
                      std::string_view token = kToken) const {
    return api_.Handle({.method = method, .target = target, .token = token}, kNow);
  }
  Json Get(std::string_view target) const {
    const VaultApiAnswer answer = Call("GET", target);
    EXPECT_EQ(answer.status, 200) << target << ": " << answer.body;
    return Json::parse(answer.body)["data"];
  }
  int Status(std::string_view method, std::string_view target,
             std::string_view token = kToken) const {
    const VaultApiAnswer answer = Call(method, target, token);
    EXPECT_TRUE(answer.status == 200 || answer.read.empty());
    EXPECT_TRUE(answer.status == 200 || answer.body.find("hunter22") == std::string::npos);
    EXPECT_TRUE(Json::accept(answer.body)) << answer.body;
    return answer.status;
  }

  const VaultApi api_ = Make();
};

TEST_F(VaultApiTest, EntryHasAllTextsAndNamesTheOthers) {
  const VaultApiAnswer answer = Call("GET", "/v1/secret/data/deployment");
  ASSERT_EQ(answer.status, 200);
  const Json json = Json::parse(answer.body);
  EXPECT_EQ(json["data"]["data"], Json({{"db", "hunter22"}, {"user", "ada \"x\"\n"}}));
  EXPECT_EQ(json["data"]["metadata"]["version"], 1);
  EXPECT_EQ(json["warnings"], Json({"key is no text: read /secrets/key"}));
  EXPECT_THAT(answer.read, ElementsAre("db", "user"));
}

TEST_F(VaultApiTest, OneSecretHasItsSignedVersion) {
  const Json data = Get("/v1/secret/data/deployment/db");
  EXPECT_EQ(data["data"], Json({{"value", "hunter22"}}));
  EXPECT_EQ(data["metadata"]["version"], 3);
  EXPECT_THAT(Call("GET", "/v1/secret/data/deployment/db?version=3").read, ElementsAre("db"));
  EXPECT_EQ(Status("GET", "/v1/secret/data/deployment/db?version=0"), 200);
  EXPECT_EQ(Status("GET", "/v1/secret/data/deployment/db?version=2"), 404);
  EXPECT_EQ(Status("GET", "/v1/secret/data/deployment/db?version=x"), 404);
  EXPECT_EQ(Status("GET", "/v1/secret/data/deployment/none"), 404);
  EXPECT_EQ(Status("GET", "/v1/secret/data/deployment/"), 404);
  EXPECT_EQ(Status("GET", "/v1/secret/data/deployment/key"), 404);
}

TEST_F(VaultApiTest, ListHasTheNamesAndNoValue) {
  for (const char* target :
       {"/v1/secret/metadata/deployment?list=true", "/v1/secret/metadata/deployment/?list=true"}) {
    EXPECT_EQ(Get(target)["keys"], Json({"db", "key", "user"}));
  }
  const VaultApiAnswer answer = Call("LIST", "/v1/secret/metadata/deployment");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.read, ElementsAre());
}

TEST_F(VaultApiTest, TokenAndEngineAreDescribed) {
  const Json token = Get("/v1/auth/token/lookup-self");
  EXPECT_EQ(token["id"], kToken);
  EXPECT_EQ(token["ttl"], 300);
  EXPECT_EQ(token["meta"], Json({{"job", "j1"}, {"deployment", "d1"}}));
  const Json engine = Get("/v1/sys/internal/ui/mounts/secret/deployment");
  EXPECT_EQ(engine["path"], "secret/");
  EXPECT_EQ(engine["options"]["version"], "2");
}

TEST_F(VaultApiTest, EverythingElseIsRefused) {
  for (const char* token : {"", "s.00112234", "s.0011223", "s.001122330"}) {
    EXPECT_EQ(Status("GET", "/v1/secret/data/deployment", token), 403) << token;
    EXPECT_EQ(Status("GET", "/v1/auth/token/lookup-self", token), 403) << token;
  }
  for (const char* target :
       {"/v1/secret/data/other", "/v1/secret/data/deployments", "/v1/secret/data/",
        "/v1/secret/metadata/deployment", "/v1/secret/deployment", "/v1/sys/mounts", "/v1/",
        "/v1/kv/data/deployment", "/v1/sys/internal/ui/mounts/kv/x",
        "/v1/secret/metadata/?list=true", "/v1/secret/data/deployment?list=true",
        "/v1/auth/token/lookup-self?list=true"}) {
    EXPECT_EQ(Status("GET", target), 403) << target;
  }
  for (const char* target : {"", "/", "/v2/secret", "secret", "/v1", "?", "/ui/"}) {
    EXPECT_EQ(Status("GET", target), 404) << target;
  }
  for (const char* method : {"PUT", "POST", "DELETE", "PATCH", "HEAD", "", "get"}) {
    EXPECT_EQ(Status(method, "/v1/secret/data/deployment/db"), 403) << method;
    EXPECT_EQ(Status(method, "/v1/auth/token/renew-self"), 403) << method;
  }
}

TEST_F(VaultApiTest, WrappedAnswerIsRefused) {
  const VaultApiAnswer answer = api_.Handle({.method = "GET",
                                             .target = "/v1/secret/data/deployment",
                                             .token = kToken,
                                             .wants_wrapping = true},
                                            kNow);
  EXPECT_EQ(answer.status, 403);
}

}  // namespace
}  // namespace muster
