// A server that answers slowly, wrongly or not at all. A real server of Vault's protocol is tested
// in testing/e2e/vault_test.go.
#include "services/jobs/vault/vault_secrets.h"

#include <httplib.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/secret_file.h"

namespace muster {
namespace {

using Json = nlohmann::json;
using Handler = std::function<void(const httplib::Request&, httplib::Response&)>;

constexpr int64_t kLease = 600;

// Makes CERTIFICATE and KEY of a server on this machine.
void MakeCertificate(const std::string& folder, const std::string& name) {
  const std::string command = absl::StrCat(
      "cd ", folder,
      " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 ",
      "-subj /CN=vault -addext subjectAltName=DNS:localhost -keyout ", name, ".key -out ", name,
      ".pem 2>openssl.log");
  ASSERT_EQ(std::system(command.c_str()), 0);
}

// A server that answers each call as the test states. Thread-safe.
class ScriptedVault {
 public:
  explicit ScriptedVault(const std::string& folder)
      : server_((folder + "/server.pem").c_str(), (folder + "/server.key").c_str()) {
    const Handler answer = [this](const httplib::Request& request, httplib::Response& response) {
      Handler handler;
      {
        MutexLock lock(mutex_);
        ++calls_[request.path];
        const auto found = handlers_.find(request.path);
        if (found != handlers_.end()) handler = found->second;
      }
      if (!handler) {
        response.status = 404;
        return response.set_content(R"({"errors":[]})", "application/json");
      }
      handler(request, response);
    };
    server_.Get("/.*", answer);
    server_.Post("/.*", answer);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
    Login(kLease);
  }
  ~ScriptedVault() { server_.stop(); }

  std::string address() const { return absl::StrCat("https://localhost:", port_); }
  int calls(const std::string& path) {
    MutexLock lock(mutex_);
    return calls_["/v1/" + path];
  }
  void Handle(const std::string& path, Handler handler) {
    MutexLock lock(mutex_);
    handlers_["/v1/" + path] = std::move(handler);
  }
  void Answer(const std::string& path, int status, std::string body) {
    Handle(path, [=](const httplib::Request&, httplib::Response& response) {
      response.status = status;
      response.set_content(body, "application/json");
    });
  }
  // Accepts each login with its own token.
  void Login(int64_t lease) {
    Handle("auth/approle/login",
           [this, lease](const httplib::Request& request, httplib::Response& response) {
             const Json json = Json::parse(request.body, nullptr, false);
             if (json.value("role_id", "") != "role" || json.value("secret_id", "") != "id") {
               response.status = 400;
             }
             response.set_content(Token(absl::StrCat("t", ++logins_), lease), "application/json");
           });
  }
  static std::string Token(const std::string& token, int64_t lease) {
    return Json({{"auth",
                  {{"client_token", token}, {"lease_duration", lease}, {"renewable", true}}}})
        .dump();
  }

 private:
  httplib::SSLServer server_;
  int port_ = 0;
  Mutex mutex_;
  std::map<std::string, Handler> handlers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> logins_ = 0;
  std::jthread thread_;
};

class VaultSecretsTest : public ::testing::Test {
 protected:
  VaultSecretsTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    MakeCertificate(folder_, "server");
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/role", "role\n").ok());
    EXPECT_TRUE(WriteFileAtomically(folder_ + "/id", "id\n").ok());
    vault_.emplace(folder_);
    options_.address = vault_->address();
    options_.ca_file = folder_ + "/server.pem";
    options_.role_id_file = folder_ + "/role";
    options_.secret_id_file = folder_ + "/id";
    options_.unwrapped_file = folder_ + "/unwrapped";
    options_.timeout = absl::Seconds(10);
    Value("secret");
  }

  // Lets the server have this value at prod/db, field password, version 2.
  void Value(const Json& value) {
    vault_->Answer(
        "secret/data/prod/db", 200,
        Json({{"data", {{"data", {{"password", value}}}, {"metadata", {{"version", 2}}}}}}).dump());
  }
  static SecretReferences References(const std::string& secret = "vault:prod/db#password",
                                     int64_t version = 2) {
    SecretReferences references;
    auto& reference = *references.Add();
    reference.set_name("db");
    reference.set_secret(secret);
    reference.set_version(version);
    return references;
  }
  VaultSecrets Make() { return VaultSecrets(options_, clock_); }
  static std::string ReadBy(VaultSecrets& secrets,
                            const SecretReferences& references = References()) {
    const auto read = secrets.Read(references);
    return read.ok() ? read->values(0).value() : ReasonOf(read.status());
  }
  std::string Read() {
    VaultSecrets secrets = Make();
    return ReadBy(secrets);
  }

  const std::string folder_ = ::testing::TempDir() + "/vault_secrets_test";
  FakeClock clock_;
  std::atomic<bool> is_over_ = false;
  std::optional<ScriptedVault> vault_;
  VaultOptions options_;
};

TEST_F(VaultSecretsTest, TextIsReadAsItIsAndOtherValuesAsJson) {
  EXPECT_EQ(Read(), "secret");
  Value(Json({{"a", 1}}));
  EXPECT_EQ(Read(), R"({"a":1})");
  Value("");
  EXPECT_EQ(Read(), "VAULT_SECRET_INVALID");
  Value(std::string(65'536, 'x'));
  EXPECT_EQ(Read(), std::string(65'536, 'x'));
  Value(std::string(65'537, 'x'));
  EXPECT_EQ(Read(), "VAULT_SECRET_INVALID");
}

TEST_F(VaultSecretsTest, APathIsReadOnceForAllItsFields) {
  VaultSecrets secrets = Make();
  SecretReferences references = References();
  *references.Add() = references[0];
  references[1].set_name("same");
  const auto read = secrets.Read(references);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->values(1).name(), "same");
  EXPECT_EQ(read->values(1).value(), "secret");
  EXPECT_EQ(vault_->calls("secret/data/prod/db"), 1);
}

TEST_F(VaultSecretsTest, OtherVersionOrFieldThanTheSignedOneIsNotUsed) {
  VaultSecrets secrets = Make();
  EXPECT_EQ(ReadBy(secrets, References("vault:prod/db#password", 1)), "VAULT_ANSWER_INVALID");
  EXPECT_EQ(ReadBy(secrets, References("vault:prod/db#user")), "VAULT_SECRET_NOT_FOUND");
  EXPECT_EQ(ReadBy(secrets, References("vault:prod/web#password")), "VAULT_SECRET_NOT_FOUND");
}

TEST_F(VaultSecretsTest, ServerThatFailsIsNamedWithItsReason) {
  vault_->Answer("secret/data/prod/db", 503, R"({"errors":["Vault is sealed"]})");
  EXPECT_EQ(Read(), "VAULT_SEALED");
  vault_->Answer("secret/data/prod/db", 500, R"({"errors":["a\nreason"]})");
  EXPECT_EQ(Read(), "VAULT_FAILED");
  VaultSecrets secrets = Make();
  EXPECT_NE(secrets.Read(References()).status().message().find("a reason"), std::string::npos);
  for (const char* body : {"", "[]", "{", "null", "\xff", R"({"data":3})", R"({"data":{}})",
                           R"({"data":{"metadata":{"version":"2"}}})"}) {
    vault_->Answer("secret/data/prod/db", 200, body);
    EXPECT_EQ(Read(), "VAULT_ANSWER_INVALID") << body;
  }
  vault_->Answer("secret/data/prod/db", 200, std::string(kMaxVaultAnswer + 1, ' '));
  EXPECT_EQ(Read(), "VAULT_ANSWER_INVALID");
}

TEST_F(VaultSecretsTest, SilentServerIsGivenUpAfterTheTimeout) {
  vault_->Handle("secret/data/prod/db", [this](const httplib::Request&, httplib::Response&) {
    while (!is_over_) std::this_thread::yield();
  });
  options_.timeout = absl::Milliseconds(200);
  EXPECT_EQ(Read(), "VAULT_UNREACHABLE");
  is_over_ = true;
}

TEST_F(VaultSecretsTest, ServerOfAnotherCaGetsNoCredentials) {
  MakeCertificate(folder_, "other");
  options_.ca_file = folder_ + "/other.pem";
  EXPECT_EQ(Read(), "VAULT_UNTRUSTED");
  EXPECT_EQ(vault_->calls("auth/approle/login"), 0);
  options_.ca_file = folder_ + "/none.pem";
  EXPECT_EQ(Read(), "VAULT_LOGIN_FAILED");
}

TEST_F(VaultSecretsTest, CredentialsThatOthersMayReadAreNotUsed) {
  std::filesystem::permissions(options_.secret_id_file, std::filesystem::perms{0644});
  EXPECT_EQ(Read(), "VAULT_LOGIN_FAILED");
  EXPECT_EQ(vault_->calls("auth/approle/login"), 0);
}

TEST_F(VaultSecretsTest, TokenIsUsedAgainAndRenewedAfterHalfOfItsTime) {
  VaultSecrets secrets = Make();
  EXPECT_EQ(ReadBy(secrets), "secret");
  EXPECT_EQ(ReadBy(secrets), "secret");
  secrets.Maintain();
  EXPECT_EQ(vault_->calls("auth/approle/login"), 1);
  EXPECT_EQ(vault_->calls("auth/token/renew-self"), 0);
  vault_->Answer("auth/token/renew-self", 200, ScriptedVault::Token("t1", kLease));
  clock_.Advance(absl::Seconds(kLease / 2));
  secrets.Maintain();
  EXPECT_EQ(vault_->calls("auth/token/renew-self"), 1);
  clock_.Advance(absl::Seconds(kLease - 10));
  EXPECT_EQ(ReadBy(secrets), "secret");
  EXPECT_EQ(vault_->calls("auth/approle/login"), 1);
  // It cannot be renewed any more.
  vault_->Answer("auth/token/renew-self", 403, R"({"errors":["permission denied"]})");
  secrets.Maintain();
  EXPECT_EQ(vault_->calls("auth/approle/login"), 2);
  clock_.Advance(absl::Seconds(kLease));
  EXPECT_EQ(ReadBy(secrets), "secret");
  EXPECT_EQ(vault_->calls("auth/approle/login"), 3);
}

TEST_F(VaultSecretsTest, RevokedTokenIsReplacedAndARefusalIsNot) {
  VaultSecrets secrets = Make();
  vault_->Handle(
      "secret/data/prod/db", [&](const httplib::Request& request, httplib::Response& response) {
        const bool is_revoked = request.get_header_value("X-Vault-Token") == "t1";
        response.status = is_revoked ? 403 : 200;
        response.set_content(R"({"data":{"data":{"password":"secret"},"metadata":{"version":2}}})",
                             "application/json");
      });
  EXPECT_EQ(ReadBy(secrets), "secret");
  EXPECT_EQ(vault_->calls("auth/approle/login"), 2);
  vault_->Answer("auth/token/lookup-self", 200, "{}");
  vault_->Answer("secret/data/prod/db", 403, R"({"errors":["permission denied"]})");
  EXPECT_EQ(ReadBy(secrets), "VAULT_PERMISSION_DENIED");
  EXPECT_EQ(vault_->calls("auth/approle/login"), 2);
}

TEST_F(VaultSecretsTest, FailedLoginIsNotRepeatedForASecond) {
  vault_->Answer("auth/approle/login", 400, R"({"errors":["invalid role or secret ID"]})");
  VaultSecrets secrets = Make();
  EXPECT_EQ(ReadBy(secrets), "VAULT_LOGIN_FAILED");
  EXPECT_EQ(ReadBy(secrets), "VAULT_LOGIN_FAILED");
  EXPECT_EQ(vault_->calls("auth/approle/login"), 1);
  clock_.Advance(absl::Seconds(1));
  vault_->Login(kLease);
  EXPECT_EQ(ReadBy(secrets), "secret");
}

TEST_F(VaultSecretsTest, WrappingTokenOfAnotherPathIsNotUnwrapped) {
  options_.secret_id_wrapping_path = "auth/approle/role/jobs/secret-id";
  vault_->Answer("sys/wrapping/lookup", 200, R"({"data":{"creation_path":"cubbyhole/x"}})");
  EXPECT_EQ(Read(), "VAULT_LOGIN_FAILED");
  EXPECT_EQ(vault_->calls("sys/wrapping/unwrap"), 0);
  vault_->Answer("sys/wrapping/lookup", 200,
                 R"({"data":{"creation_path":"auth/approle/role/jobs/secret-id"}})");
  vault_->Answer("sys/wrapping/unwrap", 200, R"({"data":{"secret_id":"id"}})");
  EXPECT_EQ(Read(), "secret");
  // The next start does not need the wrapping token, which is valid once.
  vault_->Answer("sys/wrapping/lookup", 400, R"({"errors":["used"]})");
  EXPECT_EQ(Read(), "secret");
  EXPECT_TRUE(WriteFileAtomically(folder_ + "/id", "other").ok());
  EXPECT_EQ(Read(), "VAULT_LOGIN_FAILED");
}

// The wrapping token is used up, so the secret id must not depend on the disk.
TEST_F(VaultSecretsTest, SecretIdSurvivesADiskThatCannotBeWritten) {
  const std::string path = "auth/approle/role/jobs/secret-id";
  options_.secret_id_wrapping_path = path;
  options_.unwrapped_file = folder_ + "/missing/unwrapped";
  vault_->Answer("sys/wrapping/lookup", 200,
                 absl::StrCat(R"({"data":{"creation_path":")", path, R"("}})"));
  vault_->Answer("sys/wrapping/unwrap", 200, R"({"data":{"secret_id":"id"}})");
  vault_->Login(1);  // each read logs in
  {
    VaultSecrets secrets = Make();
    EXPECT_EQ(ReadBy(secrets), "VAULT_LOGIN_FAILED");  // the token expires immediately
    vault_->Answer("sys/wrapping/lookup", 400, R"({"errors":["used"]})");
    vault_->Login(kLease);
    std::filesystem::create_directories(folder_ + "/missing");
    clock_.Advance(absl::Seconds(1));
    EXPECT_EQ(ReadBy(secrets), "secret");
  }
  EXPECT_EQ(Read(), "secret");  // by the file
}

TEST_F(VaultSecretsTest, NoReadBeginsAfterTenSeconds) {
  VaultSecrets secrets = Make();
  EXPECT_EQ(ReadBy(secrets), "secret");
  vault_->Handle(
      "secret/data/prod/db", [this](const httplib::Request&, httplib::Response& response) {
        clock_.Advance(absl::Seconds(11));
        response.set_content(R"({"data":{"data":{"password":"secret"},"metadata":{"version":2}}})",
                             "application/json");
      });
  SecretReferences references = References();
  *references.Add() = References("vault:prod/web#password")[0];
  EXPECT_EQ(ReasonOf(secrets.Read(references).status()), "VAULT_UNREACHABLE");
  EXPECT_EQ(vault_->calls("secret/data/prod/web"), 0);
}

TEST_F(VaultSecretsTest, StoppedProviderAnswersAtOnce) {
  VaultSecrets secrets = Make();
  secrets.Stop();
  EXPECT_EQ(ReadBy(secrets), "VAULT_UNREACHABLE");
  EXPECT_EQ(vault_->calls("auth/approle/login"), 0);
}

}  // namespace
}  // namespace muster
