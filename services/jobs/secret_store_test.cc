#include "services/jobs/secret_store.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/jobs/jobs_schema.h"

namespace muster {
namespace {

class SecretStoreTest : public ::testing::Test {
 protected:
  SecretStoreTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Open();
  }

  void Open() {
    store_.reset();
    database_.reset();
    database_ = sqlite::LocalDatabase::Open(folder_ + "/jobs.db", kJobsSchema).value();
    store_ = std::make_unique<SecretStore>(*database_,
                                           KeyWrap::OpenOrCreate(folder_ + "/store.key").value());
  }

  // Returns the version that is stored.
  int64_t Put(const std::string& name, std::string_view value) {
    const auto secret = store_->Put(name, value, "ann", now_);
    EXPECT_TRUE(secret.ok()) << secret.status();
    return secret.ok() ? secret->versions(0).version() : 0;
  }
  std::string ReasonOfPut(const std::string& name, std::string_view value) {
    return ReasonOf(store_->Put(name, value, "ann", now_).status());
  }
  static SecretReferences Reference(const std::string& secret, int64_t version) {
    SecretReferences references;
    auto& one = *references.Add();
    one.set_name("db");
    one.set_secret(secret);
    one.set_version(version);
    return references;
  }
  std::string Read(const std::string& secret, int64_t version) {
    const auto values = store_->Read(Reference(secret, version));
    return values.ok() ? values->values(0).value() : ReasonOf(values.status());
  }

  const std::string folder_ = ::testing::TempDir() + "/secrets";
  const absl::Time now_ = absl::FromUnixSeconds(1'750'000'000);
  std::unique_ptr<sqlite::LocalDatabase> database_;
  std::unique_ptr<SecretStore> store_;
};

TEST_F(SecretStoreTest, VersionsAreReadAfterARestart) {
  EXPECT_EQ(Put("prod/db", "first"), 1);
  EXPECT_EQ(Put("prod/db", "second"), 2);
  EXPECT_EQ(Put("prod/db", "second"), 2);  // a repeated call
  Open();
  EXPECT_EQ(Read("prod/db", 1), "first");
  EXPECT_EQ(Read("prod/db", 2), "second");
  EXPECT_EQ(Read("prod/db", 3), "SECRET_NOT_FOUND");
  EXPECT_EQ(Read("other", 1), "SECRET_NOT_FOUND");
}

TEST_F(SecretStoreTest, FilesContainNoValue) {
  Put("prod/db", "a-value-to-look-for");
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string content((std::istreambuf_iterator<char>(in)), {});
    EXPECT_EQ(content.find("a-value-to-look-for"), std::string::npos) << file.path();
  }
}

TEST_F(SecretStoreTest, ListHasSizesAndCreatorsByName) {
  Put("b", "12345");
  Put("a", "1");
  Put("b", "123");
  std::string next;
  const auto page = store_->List("", 1, &next);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->size(), 1u);
  EXPECT_EQ(page->front().secret(), "a");
  const std::string token = next;
  const auto rest = store_->List(token, 1, &next);
  ASSERT_EQ(rest->size(), 1u);
  EXPECT_EQ(rest->front().secret(), "b");
  ASSERT_EQ(rest->front().versions_size(), 2);
  EXPECT_EQ(rest->front().versions(0).version(), 2);
  EXPECT_EQ(rest->front().versions(0).size(), 3);
  EXPECT_EQ(rest->front().versions(1).created_by(), "ann");
  EXPECT_EQ(rest->front().versions(1).create_time().seconds(), 1'750'000'000);
  EXPECT_EQ(next, "");
  EXPECT_EQ(ReasonOf(store_->List("../a", 1, &next).status()), "INVALID_PAGE_TOKEN");
}

TEST_F(SecretStoreTest, DeletedSecretIsGoneAndItsVersionsAreNotUsedAgain) {
  Put("prod/db", "first");
  ASSERT_TRUE(store_->Delete("prod/db", "ann", now_).ok());
  EXPECT_EQ(Read("prod/db", 1), "SECRET_NOT_FOUND");
  EXPECT_EQ(ReasonOf(store_->Delete("prod/db", "ann", now_)), "SECRET_NOT_FOUND");
  std::string next;
  EXPECT_TRUE(store_->List("", 10, &next)->empty());
  SecretReferences newest = Reference("prod/db", 0);
  EXPECT_EQ(ReasonOf(store_->Resolve(&newest)), "SECRET_NOT_FOUND");
  EXPECT_EQ(Put("prod/db", "first"), 2);
  EXPECT_EQ(Read("prod/db", 1), "SECRET_NOT_FOUND");
}

TEST_F(SecretStoreTest, OldVersionsAreRemoved) {
  for (int64_t i = 1; i <= kMaxSecretVersions + 1; ++i) Put("a", absl::StrCat("value ", i));
  EXPECT_EQ(Read("a", 1), "SECRET_NOT_FOUND");
  EXPECT_EQ(Read("a", 2), "value 2");
  EXPECT_EQ(Read("a", kMaxSecretVersions + 1), "value 11");
}

TEST_F(SecretStoreTest, NamesAndSizesAreBounded) {
  EXPECT_EQ(ReasonOfPut("../a", "1"), "INVALID_SECRETS");
  EXPECT_EQ(ReasonOfPut("a", ""), "INVALID_SECRETS");
  EXPECT_THAT(NextStepOf(store_->Put("a", "", "ann", now_).status()),
              ::testing::HasSubstr("secret put"));
  EXPECT_EQ(ReasonOfPut("a", std::string(kMaxSecret + 1, 'x')), "INVALID_SECRETS");
  EXPECT_EQ(ReasonOfPut("a", std::string(kMaxSecret, 'x')), "");
  for (int64_t i = 1; i < kMaxSecrets; ++i) Put(absl::StrCat("s", i), "1");
  EXPECT_EQ(ReasonOfPut("one-more", "1"), "TOO_MANY_SECRETS");
  EXPECT_EQ(ReasonOfPut("s1", "another version"), "");
  ASSERT_TRUE(store_->Delete("s1", "ann", now_).ok());
  EXPECT_EQ(ReasonOfPut("one-more", "1"), "");
}

TEST_F(SecretStoreTest, SecretsOfADeploymentAreResolvedAndBoundedTogether) {
  Put("a", "1");
  Put("a", "2");
  SecretReferences references;
  for (const char* name : {"z", "b"}) {
    auto& one = *references.Add();
    one.set_name(name);
    one.set_secret("a");
  }
  references[1].set_version(1);
  ASSERT_TRUE(store_->Resolve(&references).ok());
  EXPECT_EQ(references[0].name(), "b");
  EXPECT_EQ(references[0].version(), 1);
  EXPECT_EQ(references[1].version(), 2);
  Put("large", std::string(kMaxSecret, 'x'));
  SecretReferences large;
  for (const char* name : {"a", "b", "c", "d"}) {
    auto& one = *large.Add();
    one.set_name(name);
    one.set_secret("large");
  }
  EXPECT_TRUE(store_->Resolve(&large).ok());
  auto& more = *large.Add();
  more.set_name("e");
  more.set_secret("a");
  EXPECT_EQ(ReasonOf(store_->Resolve(&large)), "INVALID_SECRETS");
}

TEST_F(SecretStoreTest, AnotherStoreKeyReadsNothingAndANewValueCanBeStored) {
  Put("a", "1");
  std::filesystem::remove(folder_ + "/store.key");
  Open();
  EXPECT_EQ(Read("a", 1), "SECRET_UNREADABLE");
  EXPECT_EQ(Put("a", "1"), 2);
  EXPECT_EQ(Read("a", 2), "1");
}

}  // namespace
}  // namespace muster
