#include "services/jobs/config.h"

#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

// Returns the reason for which a file with these lines below secrets.vault is refused.
std::string Refusal(const std::string& lines) {
  JobsServiceConfig config;
  Config file("muster-jobs");
  BindJobsServiceConfig(&config, &file);
  const absl::Status parsed =
      file.Parse("state_folder: /s\nsecrets:\n  vault:\n    mount: kv\n" + lines, "jobs.yaml");
  return ReasonOf(parsed.ok() ? CheckJobsServiceConfig(config) : parsed);
}

TEST(JobsServiceConfigTest, VaultNeedsAnHttpsAddressAndTheFilesOfItsLogin) {
  const std::string address = "    address: https://vault.example:8200\n";
  const std::string files = "    role_id_file: /r\n    secret_id_file: /s\n";
  EXPECT_EQ(Refusal(""), "");
  EXPECT_EQ(Refusal(address), "INVALID_CONFIG");
  EXPECT_EQ(Refusal(address + files), "");
  EXPECT_EQ(Refusal(address + files + "    auth: cert\n"), "INVALID_CONFIG");
  EXPECT_EQ(Refusal(address + "    auth: cert\n    certificate_file: /c\n    key_file: /k\n"), "");
  EXPECT_EQ(Refusal(address + files + "    namespace: /a\n"), "INVALID_CONFIG");
  EXPECT_EQ(Refusal(address + files + "    namespace: \"a b\"\n"), "INVALID_CONFIG");
  for (const char* other : {"http://vault.example:8200", "https://", "vault.example:8200",
                            "https://vault.example:8200/v1", "https://u@vault.example"}) {
    EXPECT_EQ(Refusal("    address: " + std::string(other) + "\n" + files), "INVALID_CONFIG")
        << other;
  }
}

}  // namespace
}  // namespace muster
