#include "cli/rpc/credentials_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "cli/exit_code.h"
#include "cli/supervisor/test_folder.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/authority.h"

namespace muster::cli {
namespace {

constexpr char kRun[] = "3f2a0123456789ab";

class CredentialsFileTest : public ::testing::Test {
 protected:
  // Uses the certificate of a root CA: the file's checks use only its dates.
  StatusCredentials Make() {
    const auto root = FleetRoot::Create("fleet-01.muster", *PrivateKey::Generate(), now_);
    return {"https://10.0.0.5:8002/", now_, root->certificate().ToPem(),
            root->certificate().ToPem(), Secret("key")};
  }

  std::string Write() {
    EXPECT_TRUE(WriteCredentials(home_, kRun, Make()).ok());
    return CredentialsPath(home_, kRun);
  }

  std::string ReasonAt(absl::Time now, const std::string& path) {
    return ReasonOf(ReadCredentials(path, now, kMaxCredentialsAge).status());
  }

  std::optional<std::string> Find(const std::string& run) {
    const auto found = FindCredentials(home_, run);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? *found : std::nullopt;
  }

  supervisor::TestFolder folder_;
  const Home home_{folder_ / "home"};
  const absl::Time now_ = absl::FromUnixSeconds(1'763'730'000);
};

TEST_F(CredentialsFileTest, WrittenFileIsReadUnchanged) {
  const std::string path = Write();
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((folder_ / "home/credentials").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  const auto back = ReadCredentials(path, now_, kMaxCredentialsAge);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->host_address, "https://10.0.0.5:8002/");
  EXPECT_EQ(back->created_at, now_);
  EXPECT_EQ(back->client_key.view(), "key");
}

TEST_F(CredentialsFileTest, StatusUrlHasOneSlashAfterTheAddress) {
  StatusCredentials credentials;
  credentials.host_address = "https://h:8002/";
  EXPECT_EQ(credentials.StatusUrl(), "https://h:8002/status");
  credentials.host_address = "https://h:8002";
  EXPECT_EQ(credentials.StatusUrl(), "https://h:8002/status");
}

TEST_F(CredentialsFileTest, WriteOverALinkReplacesIt) {
  std::filesystem::create_directories(folder_ / "home/credentials");
  const std::string elsewhere = folder_ / "elsewhere";
  std::filesystem::create_symlink(elsewhere, CredentialsPath(home_, kRun));
  EXPECT_TRUE(WriteCredentials(home_, kRun, Make()).ok());
  EXPECT_FALSE(std::filesystem::exists(elsewhere));
  EXPECT_FALSE(std::filesystem::is_symlink(CredentialsPath(home_, kRun)));
}

TEST_F(CredentialsFileTest, WriteThroughALinkedFolderFails) {
  std::filesystem::create_directories(folder_ / "home");
  std::filesystem::create_directories(folder_ / "elsewhere");
  std::filesystem::create_symlink(folder_ / "elsewhere", folder_ / "home/credentials");
  EXPECT_EQ(ReasonOf(WriteCredentials(home_, kRun, Make())), "SECRET_FILE_EXPOSED");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "elsewhere"));
}

TEST_F(CredentialsFileTest, EachInvalidFileHasItsOwnReason) {
  const std::string path = Write();
  EXPECT_EQ(ReasonAt(now_ + absl::Hours(24), path), "");
  EXPECT_EQ(ReasonAt(now_ + absl::Hours(25), path), "CREDENTIALS_TOO_OLD");
  EXPECT_EQ(ReasonAt(now_ - absl::Hours(1), path), "CREDENTIALS_TOO_OLD");
  EXPECT_EQ(
      ReasonOf(ReadCredentials(path, now_ + absl::Hours(24 * 365 * 100), absl::InfiniteDuration())
                   .status()),
      "CERTIFICATE_EXPIRED");
  EXPECT_EQ(ReasonAt(now_, path + "x"), "CREDENTIALS_NOT_FOUND");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  EXPECT_EQ(ReasonAt(now_, path), "SECRET_FILE_EXPOSED");
}

TEST_F(CredentialsFileTest, OnlyExpiredFilesAreRemoved) {
  const std::string path = Write();
  const std::string foreign = folder_ / "home/credentials/notes.json";
  std::ofstream(foreign) << "{}";
  RemoveExpiredCredentials(home_, now_ + absl::Hours(25));
  EXPECT_TRUE(std::filesystem::exists(path)) << "the certificate is valid";
  RemoveExpiredCredentials(home_, now_ + absl::Hours(24 * 365 * 100));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(foreign));
  RemoveExpiredCredentials(Home(folder_ / "nothing"), now_);
}

TEST_F(CredentialsFileTest, FileOfAnotherRunFails) {
  const auto root = FleetRoot::Create("fleet-01.muster", *PrivateKey::Generate(), now_);
  PrivateKey key = *PrivateKey::Generate();
  const Certificate signed_by_root = *root->SignIntermediate(key.public_key(), now_);
  const auto intermediate =
      Intermediate::Load("fleet-01.muster", std::move(key), signed_by_root, root->certificate());
  ASSERT_TRUE(intermediate.ok()) << intermediate.status();
  const auto run = intermediate->CreateRunAuthority(kRun, now_, now_ + absl::Hours(1));
  ASSERT_TRUE(run.ok()) << run.status();
  StatusCredentials credentials = Make();
  EXPECT_TRUE(CheckRun(credentials, "ffff").ok());  // the certificate names no run
  credentials.client_cert =
      run->Issue(RunViewerIdentity{kRun}, PrivateKey::Generate()->public_key(), {}, now_)->ToPem();
  EXPECT_TRUE(CheckRun(credentials, "").ok());
  EXPECT_TRUE(CheckRun(credentials, "3f2a").ok());
  EXPECT_TRUE(CheckRun(credentials, kRun).ok());
  EXPECT_EQ(ReasonOf(CheckRun(credentials, "ffff")), "CREDENTIALS_OF_OTHER_RUN");
}

TEST_F(CredentialsFileTest, InvalidJsonFails) {
  const std::string path = Write();
  const std::string good = *ReadSecretFile(path);
  for (const auto& [what, with] : std::map<std::string, std::string>{
           {"{", "["},
           {"\"host_address\"", "\"host\""},
           {"https:", "http:"},
           {"created_at\": \"", "created_at\": \"yesterday "},
           {"-----BEGIN CERTIFICATE-----", "-----BEGIN NOTHING-----"},
           {"\"client_key\": \"key\"", "\"client_key\": 7"}}) {
    ASSERT_TRUE(WriteFileAtomically(path, absl::StrReplaceAll(good, {{what, with}})).ok());
    EXPECT_EQ(ReasonAt(now_, path), "INVALID_CREDENTIALS") << what;
  }
}

TEST_F(CredentialsFileTest, FindReturnsTheNewestOrTheNamedFile) {
  EXPECT_EQ(Find("aaaa"), std::nullopt);
  Write();
  const std::string second = "aaaa0123456789ab";
  ASSERT_TRUE(WriteCredentials(home_, second, Make()).ok());
  std::filesystem::last_write_time(
      CredentialsPath(home_, kRun),
      std::filesystem::last_write_time(CredentialsPath(home_, second)) + std::chrono::seconds(1));
  EXPECT_EQ(Find(""), CredentialsPath(home_, kRun));
  EXPECT_EQ(Find(second), CredentialsPath(home_, second));
  EXPECT_EQ(Find("aaaa"), CredentialsPath(home_, second));
  EXPECT_EQ(Find("bbbb"), std::nullopt);
  ASSERT_EQ(setenv("MUSTER_CREDENTIALS", "/somewhere.json", 1), 0);
  const absl::Cleanup restore = [] { unsetenv("MUSTER_CREDENTIALS"); };
  EXPECT_EQ(Find(second), "/somewhere.json");
}

TEST_F(CredentialsFileTest, PrefixOfSeveralRunsIsRefused) {
  for (const char* run : {"aaaa0123456789ab", "aabb0123456789ab", "aabb0123456789ab-old"}) {
    ASSERT_TRUE(WriteCredentials(home_, run, Make()).ok());
  }
  const absl::Status several = FindCredentials(home_, "aa").status();
  EXPECT_EQ(ExitCodeOf(several), kExitUsage);
  EXPECT_TRUE(absl::StartsWith(several.message(),
                               "several runs begin with aa: aaaa0123456789ab, aabb0123456789ab"))
      << several;
  EXPECT_EQ(Find("aaaa"), CredentialsPath(home_, "aaaa0123456789ab"));
  EXPECT_EQ(Find("aabb0123456789ab"), CredentialsPath(home_, "aabb0123456789ab"));
}

}  // namespace
}  // namespace muster::cli
