// Reads by processes of a real container are tested in testing/e2e/vault_socket_test.go.
#include "services/agent/jobs/job_vault.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/unique_fd.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class JobVaultTest : public ::testing::Test {
 protected:
  JobVaultTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    EXPECT_EQ(chmod(folder_.c_str(), 0555), 0);
    auto& value = *values_.add_values();
    value.set_name("db");
    value.set_value("hunter22");
    auto& reference = *options_.references.Add();
    reference.set_name("db");
    reference.set_secret("prod/db");
    reference.set_version(3);
    options_.folder = folder_;
  }
  ~JobVaultTest() override { std::filesystem::remove_all(folder_); }

  std::string PathOf(const char* name) const { return absl::StrCat(folder_, "/", name); }
  unsigned ModeOf(const char* name) const {
    struct stat info = {};
    return lstat(PathOf(name).c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }
  // Sends a request with the token, and returns the answer until the connection is closed. Returns
  // "refused" if nothing listens.
  std::string Ask(const std::string& token) const {
    const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = PathOf(kVaultSocketFile);
    std::memcpy(address.sun_path, path.data(), path.size());
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      return "refused";
    }
    const std::string request = absl::StrCat(
        "GET /v1/secret/data/deployment HTTP/1.0\r\nX-Vault-Token: ", token, "\r\n\r\n");
    (void)send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
    std::string answer;
    char buffer[1024];
    for (ssize_t size = 0; (size = read(fd.get(), buffer, sizeof(buffer))) > 0;) {
      answer.append(buffer, static_cast<size_t>(size));
    }
    return answer;
  }

  const std::string folder_ = absl::StrCat("/dev/shm/job_vault_test.", getpid());
  v1::SecretValues values_;
  JobVault::Options options_{.folder = folder_,
                             .job = "j",
                             .deployment = "d",
                             .created = absl::UnixEpoch(),
                             .expires = absl::UnixEpoch(),
                             .references = {}};
};

TEST_F(JobVaultTest, ProcessThatIsNotInTheContainerGetsNothingWithTheToken) {
  const std::string token = NewVaultToken();
  const auto vault = JobVault::Create(options_, token, values_);
  ASSERT_TRUE(vault.ok()) << vault.status();
  EXPECT_EQ(Ask(token), "");
  (*vault)->SetContainer(std::string(64, 'a'));
  EXPECT_EQ(Ask(token), "");
  EXPECT_THAT((*vault)->Reads(), ElementsAre());
}

TEST_F(JobVaultTest, FilesAreNotWritableForTheContainer) {
  const auto vault = JobVault::Create(options_, NewVaultToken(), values_);
  ASSERT_TRUE(vault.ok()) << vault.status();
  EXPECT_EQ(ModeOf(""), 0555u);
  EXPECT_EQ(ModeOf(kVaultTokenFile), 0400u);
  EXPECT_EQ(ModeOf(kVaultReadsFile), 0600u);
  EXPECT_EQ(ModeOf(kVaultSocketFile), 0666u);
  EXPECT_EQ(JobVault::Create(options_, "other", values_).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(JobVaultTest, NextProcessOfTheAgentKeepsTokenAndCounts) {
  const std::string token = NewVaultToken();
  auto vault = JobVault::Create(options_, token, values_);
  ASSERT_TRUE(vault.ok()) << vault.status();
  vault->reset();
  EXPECT_EQ(Ask(token), "refused");
  std::ofstream(PathOf(kVaultReadsFile)) << "db 2\nuser 1\n";
  vault = JobVault::Restore(options_, values_);
  ASSERT_TRUE(vault.ok()) << vault.status();
  EXPECT_EQ((*vault)->token(), token);
  EXPECT_THAT((*vault)->Reads(), ElementsAre(Pair("db", 2), Pair("user", 1)));
  EXPECT_EQ(Ask(token), "");  // it listens again
  EXPECT_EQ(ModeOf(""), 0555u);
}

TEST_F(JobVaultTest, WithoutATokenNothingIsServed) {
  EXPECT_EQ(JobVault::Restore(options_, values_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(PathOf(kVaultSocketFile)));
}

}  // namespace
}  // namespace muster
