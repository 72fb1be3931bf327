#include "services/jobs/secret_sources.h"

#include <filesystem>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/store/sqlite/local_database.h"
#include "services/jobs/jobs_schema.h"
#include "services/jobs/secret_store.h"

namespace muster {
namespace {

constexpr absl::Time kNow = absl::FromUnixSeconds(1'750'000'000);

// A source with the values of a test.
class OtherSource final : public SecretProvider {
 public:
  absl::Status Resolve(SecretReferences* references) override {
    for (auto& reference : *references) reference.set_version(7);
    return absl::OkStatus();
  }
  absl::Status Check(const SecretReferences&) override { return absl::OkStatus(); }
  absl::StatusOr<v1::SecretValues> Read(const SecretReferences& references) override {
    v1::SecretValues values;
    for (const auto& reference : references) {
      auto& value = *values.add_values();
      value.set_name(reference.name());
      value.set_secret(reference.secret());
      value.set_version(reference.version());
      value.set_value(this->value);
    }
    return values;
  }

  std::string value = "of vault";
};

class SecretSourcesTest : public ::testing::Test {
 protected:
  SecretSourcesTest() {
    EXPECT_TRUE(store_.Put("prod/db", "stored", "spiffe://f/user/u", kNow).ok());
  }
  static void Add(const std::string& name, const std::string& secret,
                  SecretReferences* references) {
    auto& reference = *references->Add();
    reference.set_name(name);
    reference.set_secret(secret);
  }
  static std::string Prepared(const std::string& name) {
    std::filesystem::remove_all(::testing::TempDir() + name);
    std::filesystem::create_directories(::testing::TempDir() + name);
    return ::testing::TempDir() + name;
  }

  const std::string folder_ = Prepared("secret_sources_test");
  const std::unique_ptr<sqlite::LocalDatabase> database_ =
      *sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema, [](const absl::Status&) {});
  SecretStore store_{*database_, *KeyWrap::OpenOrCreate(folder_ + "/store.key")};
  OtherSource vault_;
};

TEST_F(SecretSourcesTest, ReferencesOfBothAreSortedAndReadInTheirOrder) {
  SecretSources sources(store_, &vault_);
  SecretReferences references;
  Add("c", "prod/db", &references);
  Add("b", "vault:prod/db#password", &references);
  Add("a", "prod/db", &references);
  ASSERT_TRUE(sources.Resolve(&references).ok());
  EXPECT_TRUE(sources.Check(references).ok());
  EXPECT_TRUE(NamesVault(references));
  const auto values = sources.Read(references);
  ASSERT_TRUE(values.ok()) << values.status();
  ASSERT_EQ(values->values_size(), 3);
  EXPECT_EQ(values->values(0).name(), "a");
  EXPECT_EQ(values->values(0).value(), "stored");
  EXPECT_EQ(values->values(0).version(), 1);
  EXPECT_EQ(values->values(1).value(), "of vault");
  EXPECT_EQ(values->values(1).version(), 7);
  EXPECT_EQ(values->values(2).name(), "c");
}

TEST_F(SecretSourcesTest, WithoutAVaultItsSecretsAreRefused) {
  SecretSources sources(store_, nullptr);
  SecretReferences references;
  Add("a", "prod/db", &references);
  EXPECT_TRUE(sources.Resolve(&references).ok());
  EXPECT_FALSE(NamesVault(references));
  Add("b", "vault:prod/db#password", &references);
  EXPECT_EQ(ReasonOf(sources.Resolve(&references)), "VAULT_NOT_CONFIGURED");
  EXPECT_EQ(ReasonOf(sources.Check(references)), "VAULT_NOT_CONFIGURED");
  EXPECT_EQ(ReasonOf(sources.Read(references).status()), "VAULT_NOT_CONFIGURED");
}

TEST_F(SecretSourcesTest, ValuesOfBothAreBoundedTogether) {
  SecretSources sources(store_, &vault_);
  SecretReferences references;
  for (const char* name : {"a", "b", "c", "d"}) Add(name, "vault:prod/db#password", &references);
  vault_.value.assign(65'536, 'x');
  ASSERT_TRUE(sources.Resolve(&references).ok());
  EXPECT_TRUE(sources.Read(references).ok());
  Add("e", "prod/db", &references);
  ASSERT_TRUE(sources.Resolve(&references).ok());
  EXPECT_EQ(ReasonOf(sources.Read(references).status()), "INVALID_SECRETS");
  for (int i = 0; i < 12; ++i) Add("f", "prod/db", &references);
  EXPECT_EQ(ReasonOf(sources.Resolve(&references)), "INVALID_SECRETS");
}

}  // namespace
}  // namespace muster
