#include "services/common/identity/command_authority.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";

class CommandAuthorityTest : public ::testing::Test {
 protected:
  CommandAuthorityTest() { std::filesystem::create_directories(folder_); }
  ~CommandAuthorityTest() override { std::filesystem::remove_all(folder_); }

  std::string InFolder(const std::string& name) const { return folder_ + "/" + name; }

  const absl::Time now_ = absl::Now();
  const std::string folder_ = ::testing::TempDir() + "command_authority_" +
                              ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const SigningPublicKey key_ = SigningKey::Generate()->public_key();
};

TEST_F(CommandAuthorityTest, AuthorityIsCreatedOnceAndLoadedLater) {
  const auto made = CommandAuthority::Ensure(folder_, kFleet, now_);
  ASSERT_TRUE(made.ok()) << made.status();
  struct stat info{};
  ASSERT_EQ(stat(InFolder("command-ca.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto found = CommandAuthority::Ensure(folder_, kFleet, now_ + absl::Hours(1));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->certificate(), made->certificate());
}

TEST_F(CommandAuthorityTest, InterruptedCreationIsCompleted) {
  const auto made = CommandAuthority::Ensure(folder_, kFleet, now_);
  ASSERT_TRUE(made.ok());
  std::filesystem::remove(InFolder("command-ca.crt"));
  const auto completed = CommandAuthority::Ensure(folder_, kFleet, now_);
  ASSERT_TRUE(completed.ok()) << completed.status();
  EXPECT_TRUE(completed->certificate().Matches(made->key()));
}

TEST_F(CommandAuthorityTest, LostKeyIsNotReplaced) {
  ASSERT_TRUE(CommandAuthority::Ensure(folder_, kFleet, now_).ok());
  std::filesystem::remove(InFolder("command-ca.key"));
  EXPECT_EQ(ReasonOf(CommandAuthority::Ensure(folder_, kFleet, now_).status()), "HOME_INCOMPLETE");
}

TEST_F(CommandAuthorityTest, DamagedKeyIsRefused) {
  ASSERT_TRUE(CommandAuthority::Ensure(folder_, kFleet, now_).ok());
  const std::string file = InFolder("command-ca.key");
  std::string pem = *ReadFileBounded(file, 1 << 16);
  // A character within the private number, which does not change the public key in the file.
  char& digit = pem[pem.find('\n') + 1 + 60];
  digit = digit == 'A' ? 'B' : 'A';
  ASSERT_TRUE(WriteFileAtomically(file, pem, 0600).ok());
  EXPECT_EQ(ReasonOf(CommandAuthority::Ensure(folder_, kFleet, now_).status()),
            "AUTHORITY_MISMATCH");
}

TEST_F(CommandAuthorityTest, PartsOfDifferentAuthoritiesAreRefused) {
  ASSERT_TRUE(CommandAuthority::Ensure(folder_, kFleet, now_).ok());
  EXPECT_EQ(ReasonOf(CommandAuthority::Ensure(folder_, "another.muster", now_).status()),
            "AUTHORITY_MISMATCH");
  ASSERT_TRUE(
      WriteFileAtomically(InFolder("command-ca.key"), PrivateKey::Generate()->ToPkcs8Pem()->view())
          .ok());
  EXPECT_EQ(ReasonOf(CommandAuthority::Ensure(folder_, kFleet, now_).status()),
            "AUTHORITY_MISMATCH");
}

TEST_F(CommandAuthorityTest, SigningCertificateIsValidForADay) {
  const CommandAuthority authority =
      *CommandAuthority::Create(kFleet, *PrivateKey::Generate(), now_);
  const std::array<Certificate, 1> roots = {authority.certificate()};
  for (const FleetName& name :
       {FleetName(UserIdentity{"o"}), FleetName(ServiceIdentity{ServiceRole::kGateway, "g"})}) {
    const auto issued = authority.Issue(name, key_, now_);
    ASSERT_TRUE(issued.ok()) << issued.status();
    EXPECT_LE(issued->NotAfter(), now_ + absl::Hours(24));
    EXPECT_GT(issued->NotAfter(), now_ + absl::Hours(23));
    EXPECT_TRUE(VerifyChain(*issued, {}, roots, Usage::kClient, now_).ok());
    EXPECT_EQ(*SigningPublicKey::Of(*issued)->ToPem(), *key_.ToPem());
  }
}

TEST_F(CommandAuthorityTest, OtherRolesGetNoSigningCertificate) {
  const CommandAuthority authority =
      *CommandAuthority::Create(kFleet, *PrivateKey::Generate(), now_);
  for (const FleetName& name :
       {FleetName(NodeIdentity{"n"}), FleetName(ServiceIdentity{ServiceRole::kRelay, "r"}),
        FleetName(ServiceIdentity{ServiceRole::kAggregator, "a"})}) {
    EXPECT_EQ(ReasonOf(authority.Issue(name, key_, now_).status()), "ISSUER_MAY_NOT_SIGN");
  }
}

}  // namespace
}  // namespace muster
