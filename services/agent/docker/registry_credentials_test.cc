#include "services/agent/docker/registry_credentials.h"

#include <sys/stat.h>

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class RegistryCredentialsTest : public ::testing::Test {
 protected:
  RegistryCredentialsTest() { remove(path_.c_str()); }

  void Write(const std::string& text) { ASSERT_TRUE(WriteFileAtomically(path_, text).ok()); }

  Json For(const std::string& image) {
    const auto header = RegistryCredentials(path_).HeaderFor(image);
    EXPECT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->size() % 4, 0u) << "Go's decoder demands the padding";
    std::string text;
    EXPECT_TRUE(
        absl::Base64Unescape(absl::StrReplaceAll(*header, {{"-", "+"}, {"_", "/"}}), &text));
    return Json::parse(text);
  }

  std::string Fault(const std::string& text) {
    Write(text);
    const absl::Status status = RegistryCredentials(path_).HeaderFor("r.example/a").status();
    EXPECT_EQ(ReasonOf(status), "REGISTRY_CREDENTIALS_UNUSABLE") << status;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("s3cret")));
    return std::string(status.message());
  }

  const std::string path_ = ::testing::TempDir() + "/registry.json";
};

TEST_F(RegistryCredentialsTest, EachRegistryGetsItsOwn) {
  Write(R"({"auths": {
    "r.example:5000": {"auth": "YWxpY2U6czNjcmV0Og=="},
    "https://t.example/v2/": {"identitytoken": "token?>"},
    "https://index.docker.io/v1/": {"username": "bob", "password": "p"}}})");
  EXPECT_EQ(
      For("r.example:5000/web"),
      Json({{"serveraddress", "r.example:5000"}, {"username", "alice"}, {"password", "s3cret:"}}));
  EXPECT_EQ(For("t.example/a"),
            Json({{"serveraddress", "t.example"}, {"identitytoken", "token?>"}}));
  EXPECT_EQ(For("alpine")["username"], "bob");
  EXPECT_EQ(For("r.example/web"), Json::object()) << "another port";
}

TEST_F(RegistryCredentialsTest, NoFileMeansNoCredentials) {
  EXPECT_EQ(For("r.example/a"), Json::object());
  EXPECT_TRUE(RegistryCredentials("").HeaderFor("r.example/a").ok());
}

TEST_F(RegistryCredentialsTest, ChangeNeedsNoRestart) {
  const RegistryCredentials credentials(path_);
  const std::string before = credentials.HeaderFor("r.example/a").value();
  Write(R"({"auths": {"r.example": {"auth": "YTpi"}}})");
  EXPECT_NE(credentials.HeaderFor("r.example/a").value(), before);
}

TEST_F(RegistryCredentialsTest, UnusableFileIsReportedWithoutItsContent) {
  EXPECT_THAT(Fault("s3cret"), HasSubstr("it is not a JSON object"));
  EXPECT_THAT(Fault(R"({"credsStore": "s3cret"})"), HasSubstr("credsStore"));
  EXPECT_THAT(Fault(R"({"credHelpers": {}})"), HasSubstr("credHelpers"));
  for (const char* entry :
       {R"({})", R"({"auth": "s3cret%"})", R"({"auth": "YWJj"})", R"("s3cret")"}) {
    EXPECT_THAT(Fault(std::string(R"({"auths": {"r.example": )") + entry + "}}"),
                HasSubstr("the entry of r.example"));
  }
}

TEST_F(RegistryCredentialsTest, FileThatOthersMayReadIsNotUsed) {
  Write(R"({"auths": {"r.example": {"auth": "YTpi"}}})");
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  EXPECT_EQ(ReasonOf(RegistryCredentials(path_).HeaderFor("r.example/a").status()),
            "REGISTRY_CREDENTIALS_UNUSABLE");
}

TEST_F(RegistryCredentialsTest, ImageIsNamedInTheMirrorOfItsRegistry) {
  const std::string digest = "@sha256:" + std::string(64, 'a');
  Write(R"({"mirrors": {"r.example:5000": "r.site/outside", "docker.io": "127.0.0.1:5000"}})");
  const RegistryCredentials registries(path_);
  EXPECT_EQ(*registries.NameInMirror("r.example:5000/types/web:v1" + digest),
            "r.site/outside/types/web" + digest);
  EXPECT_EQ(*registries.NameInMirror("busybox" + digest),
            "127.0.0.1:5000/library/busybox" + digest);
  EXPECT_EQ(*registries.NameInMirror("other.example/a" + digest), "other.example/a" + digest);
  EXPECT_EQ(*registries.NameInMirror(digest.substr(1)), digest.substr(1)) << "an id";
  EXPECT_EQ(*RegistryCredentials("").NameInMirror("busybox" + digest), "busybox" + digest);
  for (const char* text : {R"({"mirrors": ["r.example"]})", R"({"mirrors": {"r.example": 1}})",
                           R"({"mirrors": {"r.example": "https://r.site"}})"}) {
    Write(text);
    EXPECT_EQ(ReasonOf(registries.NameInMirror("r.example/a" + digest).status()),
              "REGISTRY_CREDENTIALS_UNUSABLE")
        << text;
  }
}

// An entry of a host without a dot must not become that of Docker Hub.
TEST_F(RegistryCredentialsTest, EntryOfAHostWithoutADotIsNotThatOfDockerHub) {
  Write(R"({"auths": {"registry": {"auth": "YTpi"}}})");
  EXPECT_EQ(For("alpine"), Json::object());
}

}  // namespace
}  // namespace muster
