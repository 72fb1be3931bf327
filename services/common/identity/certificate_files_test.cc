#include "services/common/identity/certificate_files.h"

#include <sys/stat.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/authority.h"
#include "services/common/identity/signing_request.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-01.muster";
const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

class CertificateFilesTest : public ::testing::Test {
 protected:
  CertificateFilesTest()
      : base_(std::filesystem::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()),
        root_(*FleetRoot::Create(kFleet, *PrivateKey::Generate(), kNow)),
        intermediate_(MakeIntermediate()) {
    std::filesystem::create_directories(Tls());
    WriteTrio(*PrivateKey::Generate());
  }
  ~CertificateFilesTest() override { std::filesystem::remove_all(base_); }

  Intermediate MakeIntermediate() {
    const PrivateKey key = *PrivateKey::Generate();
    return *Intermediate::Load(kFleet, key, *root_.SignIntermediate(key.public_key(), kNow),
                               root_.certificate());
  }

  std::string Tls() { return base_ / "tls"; }
  std::string Runtime() { return base_ / "run" / "tls"; }

  std::string Chain(const PublicKey& key, absl::Time now = kNow,
                    const FleetName& name = ServiceIdentity{ServiceRole::kStatus, "main"}) {
    return ChainToPem(std::vector{*intermediate_.Issue(name, key, {}, now, now + kServiceValidity),
                                  intermediate_.certificate()});
  }

  void Write(const std::string& name, std::string_view content) {
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(Tls(), "/", name), content).ok());
  }
  void WriteTrio(const PrivateKey& key) {
    Write("key.pem", key.ToPkcs8Pem()->view());
    Write("cert.pem", Chain(key.public_key()));
    Write("ca.pem", root_.certificate().ToPem());
  }

  absl::StatusOr<std::unique_ptr<CertificateFiles>> Open(absl::Time now = kNow) {
    return CertificateFiles::Open(Tls(), Runtime(), ServiceRole::kStatus, now);
  }

  static std::string Read(const std::string& folder, const std::string& name) {
    return ReadFileBounded(absl::StrCat(folder, "/", name), 1 << 20).value_or("");
  }
  // Returns true if gRPC could load the folder: its key and certificate match.
  static bool IsWhole(const std::string& folder) {
    const auto key = PrivateKey::FromPem(Read(folder, "key.pem"));
    const auto chain = ParseChain(Read(folder, "cert.pem"));
    return key.ok() && chain.ok() && chain->front().Matches(*key) &&
           ParseChain(Read(folder, "ca.pem")).ok();
  }
  int Published() {
    int folders = 0;
    for (const auto& entry : std::filesystem::directory_iterator(Runtime())) {
      if (entry.is_directory() && !entry.is_symlink()) ++folders;
    }
    return folders;
  }

  std::filesystem::path base_;
  FleetRoot root_;
  Intermediate intermediate_;
};

TEST_F(CertificateFilesTest, OpenPublishesAVerifiedCopy) {
  const auto files = Open();
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string folder = (*files)->published_folder();
  EXPECT_TRUE(IsWhole(folder));
  for (const char* name : {"key.pem", "cert.pem", "ca.pem"}) {
    struct stat info{};
    ASSERT_EQ(stat(absl::StrCat(folder, "/", name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
  EXPECT_EQ((*files)->identity(),
            (Identity{kFleet, ServiceIdentity{ServiceRole::kStatus, "main"}}));
}

TEST_F(CertificateFilesTest, FolderOfANodeIsPublishedInTheSameWay) {
  const PrivateKey key = *PrivateKey::Generate();
  Write("key.pem", key.ToPkcs8Pem()->view());
  Write("cert.pem", Chain(key.public_key(), kNow, NodeIdentity{"n1"}));
  const auto files = CertificateFiles::Open(Tls(), Runtime(), Role::kNode, kNow);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ((*files)->identity(), (Identity{kFleet, NodeIdentity{"n1"}}));
  const auto request = (*files)->BeginRenewal();
  ASSERT_TRUE(request.ok()) << request.status();
  const PublicKey next = *VerifySigningRequest(*request);
  EXPECT_EQ(ReasonOf((*files)->CompleteRenewal(Chain(next, kNow, NodeIdentity{"n2"}), kNow)),
            "CERTIFICATE_FILES_UNUSABLE");
  EXPECT_TRUE((*files)->CompleteRenewal(Chain(next, kNow, NodeIdentity{"n1"}), kNow).ok());
  // The certificate is rejected as that of a service.
  EXPECT_EQ(ReasonOf(Open().status()), "CERTIFICATE_FILES_UNUSABLE");
}

TEST_F(CertificateFilesTest, ReplacementIsPublishedAtomically) {
  const auto files = Open();
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string before = std::filesystem::canonical((*files)->published_folder());
  for (int i = 0; i < 3; ++i) {
    const PrivateKey key = *PrivateKey::Generate();
    WriteTrio(key);
    ASSERT_TRUE((*files)->Refresh(kNow).ok());
    EXPECT_TRUE(IsWhole((*files)->published_folder()));
    EXPECT_EQ(Read((*files)->published_folder(), "key.pem"), key.ToPkcs8Pem()->view());
    // The previous folder remains for its readers; older ones are removed.
    EXPECT_EQ(Published(), 2);
    EXPECT_EQ(IsWhole(before), i == 0);
  }
  const std::string now = std::filesystem::canonical((*files)->published_folder());
  ASSERT_TRUE((*files)->Refresh(kNow).ok());
  EXPECT_EQ(std::filesystem::canonical((*files)->published_folder()), now);
}

TEST_F(CertificateFilesTest, InvalidReplacementIsReportedAndNotPublished) {
  const auto files = Open();
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string good = Read((*files)->published_folder(), "cert.pem");
  Write("key.pem", PrivateKey::Generate()->ToPkcs8Pem()->view());  // a pair that does not match
  EXPECT_EQ(ReasonOf((*files)->Refresh(kNow)), "CERTIFICATE_FILES_UNUSABLE");
  Write("cert.pem", "garbage");
  EXPECT_EQ(ReasonOf((*files)->Refresh(kNow)), "CERTIFICATE_MALFORMED");
  std::filesystem::remove(Tls() + "/cert.pem");
  EXPECT_EQ((*files)->Refresh(kNow).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(IsWhole((*files)->published_folder()));
  EXPECT_EQ(Read((*files)->published_folder(), "cert.pem"), good);
}

TEST_F(CertificateFilesTest, EachFaultHasItsReason) {
  EXPECT_EQ(ReasonOf(Open(kNow + kServiceValidity + absl::Hours(1)).status()),
            "CERTIFICATE_EXPIRED");
  const PrivateKey key = *PrivateKey::Generate();
  WriteTrio(key);
  Write("cert.pem", Chain(key.public_key(), kNow, ServiceIdentity{ServiceRole::kGateway, "g"}));
  EXPECT_EQ(ReasonOf(Open().status()), "CERTIFICATE_FILES_UNUSABLE");
  Write("cert.pem", Chain(key.public_key(), kNow, UserIdentity{"ann"}));
  EXPECT_EQ(ReasonOf(Open().status()), "CERTIFICATE_FILES_UNUSABLE");
  WriteTrio(key);
  Write("ca.pem", FleetRoot::Create(kFleet, key, kNow)->certificate().ToPem());
  EXPECT_EQ(ReasonOf(Open().status()), "CERTIFICATE_UNTRUSTED");
  WriteTrio(key);
  ASSERT_EQ(chmod((Tls() + "/key.pem").c_str(), 0644), 0);
  EXPECT_EQ(ReasonOf(Open().status()), "SECRET_FILE_EXPOSED");
}

TEST_F(CertificateFilesTest, SecondRootIsPublished) {
  Write("ca.pem",
        root_.certificate().ToPem() +
            FleetRoot::Create(kFleet, *PrivateKey::Generate(), kNow)->certificate().ToPem());
  const auto files = Open();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(ParseChain(Read((*files)->published_folder(), "ca.pem"))->size(), 2u);
}

TEST_F(CertificateFilesTest, RenewalAtHalfOfTheValidityUsesANewKey) {
  const auto files = Open();
  ASSERT_TRUE(files.ok()) << files.status();
  const Certificate old = (*files)->certificate();
  EXPECT_FALSE((*files)->NeedsRenewal(kNow + kServiceValidity / 2 - absl::Seconds(1)));
  const absl::Time later = kNow + kServiceValidity / 2;
  EXPECT_TRUE((*files)->NeedsRenewal(later));

  const auto request = (*files)->BeginRenewal();
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(Open().ok());  // a crash at this point leaves the old pair
  const PublicKey key = *VerifySigningRequest(*request);
  ASSERT_TRUE((*files)->CompleteRenewal(Chain(key, later), later).ok());
  EXPECT_FALSE((*files)->NeedsRenewal(later));
  EXPECT_TRUE(IsWhole((*files)->published_folder()));
  EXPECT_TRUE(IsWhole(Tls()));
  EXPECT_FALSE((*files)->certificate() == old);
  EXPECT_EQ(*(*files)->certificate().Key(), key);
  EXPECT_FALSE(std::filesystem::exists(Tls() + "/next-key.pem"));
}

TEST_F(CertificateFilesTest, CrashBetweenCertificateAndKeyIsCompleted) {
  std::string request;
  {
    const auto files = Open();
    ASSERT_TRUE(files.ok()) << files.status();
    request = *(*files)->BeginRenewal();
  }
  Write("cert.pem", Chain(*VerifySigningRequest(request)));
  EXPECT_FALSE(IsWhole(Tls()));
  const auto files = Open();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE(IsWhole(Tls()));
  EXPECT_TRUE(IsWhole((*files)->published_folder()));
}

TEST_F(CertificateFilesTest, RenewalForAnotherKeyOrNameIsRefused) {
  const auto files = Open();
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string cert = Read(Tls(), "cert.pem");
  const PublicKey key = *VerifySigningRequest(*(*files)->BeginRenewal());
  const auto reason = [&](const std::string& chain) {
    return ReasonOf((*files)->CompleteRenewal(chain, kNow));
  };
  EXPECT_EQ(reason(Chain(PrivateKey::Generate()->public_key())), "CERTIFICATE_FILES_UNUSABLE");
  EXPECT_EQ(reason(Chain(key, kNow, ServiceIdentity{ServiceRole::kStatus, "other"})),
            "CERTIFICATE_FILES_UNUSABLE");
  EXPECT_EQ(reason(Chain(key, kNow, UserIdentity{"ann"})), "CERTIFICATE_FILES_UNUSABLE");
  EXPECT_EQ(reason("x"), "CERTIFICATE_MALFORMED");
  EXPECT_EQ(Read(Tls(), "cert.pem"), cert);
  EXPECT_TRUE(IsWhole(Tls()));
  EXPECT_EQ(reason(Chain(key)), "");
}

TEST_F(CertificateFilesTest, FoldersOfAnEarlierProcessAreRemoved) {
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(Open().ok());
    EXPECT_EQ(Published(), 1);
  }
}

}  // namespace
}  // namespace muster
