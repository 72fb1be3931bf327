#include "services/common/identity/bootstrap.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/authority_files.h"
#include "services/common/identity/certificate_files.h"

namespace muster {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

// All files, in the order of their creation.
const std::vector<std::string> kFiles = {
    "fleet.json",
    "aggregator/store.key",
    "root/ca.key",
    "root/ca.crt",
    "aggregator/intermediate.key",
    "aggregator/intermediate.crt",
    "aggregator/tls/key.pem",
    "aggregator/tls/ca.pem",
    "aggregator/tls/cert.pem",
    "status/tls/key.pem",
    "status/tls/ca.pem",
    "status/tls/cert.pem",
    "gateway/tls/key.pem",
    "gateway/tls/ca.pem",
    "gateway/tls/cert.pem",
    "relay/tls/key.pem",
    "relay/tls/ca.pem",
    "relay/tls/cert.pem",
    "jobs/tls/key.pem",
    "jobs/tls/ca.pem",
    "jobs/tls/cert.pem",
    "operators/ann.json",
    "aggregator/first-operator.crt",
    "context.json",
};

class BootstrapTest : public ::testing::Test {
 protected:
  BootstrapTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ::testing::UnitTest::GetInstance()->current_test_info()->name()),
        home_(folder_ / "home") {
    options_.operator_name = "ann";
    options_.aggregator_targets = {"127.0.0.1:1"};
  }
  ~BootstrapTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<BootstrapReport> Up(absl::Time now = kNow) {
    return Bootstrap(home_, options_, now);
  }
  std::string ReasonOfUp(absl::Time now = kNow) { return ReasonOf(Up(now).status()); }

  std::string Path(const std::string& name) { return home_.path() + "/" + name; }
  void Remove(const std::string& name) { ASSERT_TRUE(std::filesystem::remove(Path(name))); }

  std::map<std::string, std::string> Files() {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(home_.path())) {
      if (entry.is_directory()) continue;
      files[std::filesystem::relative(entry.path(), home_.path())] =
          *ReadFileBounded(entry.path(), 1 << 20);
    }
    return files;
  }

  // Expects that all files exist, belong together and are usable.
  void ExpectWhole(absl::Time now = kNow) {
    EXPECT_TRUE(ReadFleet(home_).ok());
    const auto intermediate = LoadIntermediate(home_.ServiceFolder(ServiceRole::kAggregator));
    ASSERT_TRUE(intermediate.ok()) << intermediate.status();
    for (const ServiceRole role :
         {ServiceRole::kAggregator, ServiceRole::kStatus, ServiceRole::kGateway,
          ServiceRole::kRelay, ServiceRole::kJobs}) {
      const auto trio = LoadCertificateTrio(home_.TlsFolder(role), role, now);
      EXPECT_TRUE(trio.ok()) << trio.status();
    }
    const auto context = ReadContext(home_.ContextFile());
    ASSERT_TRUE(context.ok()) << context.status();
    EXPECT_TRUE(CheckContext(*context, now).ok());
  }

  std::filesystem::path folder_;
  Home home_;
  BootstrapOptions options_;
};

TEST_F(BootstrapTest, FleetIsCreatedOnce) {
  const auto report = Up();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->operator_name, "ann");
  EXPECT_TRUE(report->fleet.starts_with("fleet-"));
  EXPECT_FALSE(report->done.empty());
  ExpectWhole();
  const auto files = Files();
  EXPECT_EQ(files.size(), kFiles.size());
  for (const std::string& name : kFiles) EXPECT_TRUE(files.contains(name)) << name;
  for (const std::string& name : kFiles) {
    struct stat info{};
    ASSERT_EQ(stat(Path(name).c_str(), &info), 0);
    const bool is_public = name.ends_with(".crt") || name.ends_with("cert.pem") ||
                           name.ends_with("ca.pem") || name == "fleet.json";
    EXPECT_EQ(info.st_mode & 0777, is_public ? 0644u : 0600u) << name;
  }

  const auto again = Up();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->fleet, report->fleet);
  EXPECT_EQ(again->operator_name, "ann");
  EXPECT_TRUE(again->done.empty());
  EXPECT_EQ(Files(), files);
}

TEST_F(BootstrapTest, CrashAtAnyPointIsCompletedWithoutReplacement) {
  ASSERT_TRUE(Up().ok());
  const auto whole = Files();
  for (size_t made = 0; made <= kFiles.size(); ++made) {
    SCOPED_TRACE(made);
    std::filesystem::remove_all(home_.path());
    for (size_t i = 0; i < made; ++i) {
      std::filesystem::create_directories(std::filesystem::path(Path(kFiles[i])).parent_path());
      ASSERT_TRUE(WriteFileAtomically(Path(kFiles[i]), whole.at(kFiles[i])).ok());
    }
    const auto report = Up();
    ASSERT_TRUE(report.ok()) << report.status();
    ExpectWhole();
    const auto files = Files();
    EXPECT_EQ(files.size(), kFiles.size());
    for (size_t i = 0; i < made; ++i) EXPECT_EQ(files.at(kFiles[i]), whole.at(kFiles[i]));
  }
}

TEST_F(BootstrapTest, MissingIrreplaceableFilesAreRefused) {
  ASSERT_TRUE(Up().ok());
  const auto whole = Files();
  const std::map<std::string, std::string> refused = {
      {"fleet.json", "HOME_INCOMPLETE"},
      {"root/ca.crt", "HOME_INCOMPLETE"},
      {"aggregator/intermediate.key", "HOME_INCOMPLETE"},
      {"aggregator/store.key", "HOME_INCOMPLETE"},
  };
  ASSERT_TRUE(WriteFileAtomically(home_.StateDatabase(), "x").ok());
  for (const auto& [name, reason] : refused) {
    SCOPED_TRACE(name);
    Remove(name);
    const absl::Status status = Up().status();
    EXPECT_EQ(ReasonOf(status), reason) << status;
    EXPECT_NE(NextStepOf(status), "");
    EXPECT_FALSE(std::filesystem::exists(Path(name)));
    ASSERT_TRUE(WriteFileAtomically(Path(name), whole.at(name)).ok());
    EXPECT_TRUE(Up().ok());
  }
  // A different key is refused and not replaced.
  for (const char* name : {"root/ca.key", "aggregator/intermediate.key"}) {
    const std::string other(PrivateKey::Generate()->ToPkcs8Pem()->view());
    ASSERT_TRUE(WriteFileAtomically(Path(name), other).ok());
    EXPECT_EQ(ReasonOfUp(), "AUTHORITY_MISMATCH") << name;
    EXPECT_EQ(Files().at(name), other);
    ASSERT_TRUE(WriteFileAtomically(Path(name), whole.at(name)).ok());
  }
  ASSERT_EQ(chmod(home_.RootKey().c_str(), 0644), 0);
  EXPECT_EQ(ReasonOfUp(), "SECRET_FILE_EXPOSED");
}

// Such as a disk that is not mounted: a new store would lose all runs and revocations.
TEST_F(BootstrapTest, LostFolderOfTheAggregatorIsNotReplaced) {
  ASSERT_TRUE(Up().ok());
  std::filesystem::remove_all(Path("aggregator"));
  const absl::Status status = Up().status();
  EXPECT_EQ(ReasonOf(status), "HOME_INCOMPLETE") << status;
  EXPECT_TRUE(absl::StrContains(NextStepOf(status), "Mount the disk of")) << status;
  EXPECT_FALSE(std::filesystem::exists(home_.IntermediateKey()));
}

TEST_F(BootstrapTest, LostServiceKeyIsReplaced) {
  ASSERT_TRUE(Up().ok());
  Remove("status/tls/key.pem");
  const auto report = Up();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->done.size(), 1u);
  ExpectWhole();
}

TEST_F(BootstrapTest, DamagedServiceFileCanBeRemoved) {
  ASSERT_TRUE(Up().ok());
  for (const char* file : {"key.pem", "ca.pem", "cert.pem"}) {
    const std::string name = absl::StrCat("status/tls/", file);
    ASSERT_TRUE(WriteFileAtomically(Path(name), "damaged").ok());
    const absl::Status refused = Up().status();
    EXPECT_TRUE(absl::StartsWith(refused.message(), Path(name) + ": invalid PEM")) << refused;
    EXPECT_TRUE(absl::StrContains(NextStepOf(refused), "remove it instead, and run `muster up`"))
        << NextStepOf(refused);
    Remove(name);
    const auto report = Up();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->done.size(), 1u) << file << ": only the status service gets a certificate";
    ExpectWhole();
  }
}

TEST_F(BootstrapTest, DamagedKeyOfACaHasToBeRestored) {
  ASSERT_TRUE(Up().ok());
  for (const char* file : {"root/ca.key", "aggregator/intermediate.key"}) {
    const std::string before = *ReadFileBounded(Path(file), 1 << 20);
    ASSERT_TRUE(WriteFileAtomically(Path(file), "damaged").ok());
    const absl::Status refused = Up().status();
    EXPECT_EQ(ReasonOf(refused), "KEY_MALFORMED");
    EXPECT_TRUE(absl::StartsWith(NextStepOf(refused), "Restore the file from a backup."));
    ASSERT_TRUE(WriteFileAtomically(Path(file), before).ok());
    EXPECT_TRUE(Up().ok());
  }
}

TEST_F(BootstrapTest, OfflineRootIsAccepted) {
  ASSERT_TRUE(Up().ok());
  const std::string key(ReadFileBounded(home_.RootKey(), 1 << 20).value());
  Remove("root/ca.key");
  EXPECT_TRUE(Up().ok());
  Remove("root/ca.crt");
  Remove("gateway/tls/cert.pem");
  EXPECT_TRUE(Up().ok());
  ExpectWhole();
  Remove("aggregator/intermediate.crt");
  EXPECT_EQ(ReasonOfUp(), "ROOT_KEY_OFFLINE");
  Remove("aggregator/tls/ca.pem");
  EXPECT_EQ(ReasonOfUp(), "HOME_INCOMPLETE");
}

TEST_F(BootstrapTest, CertificatesAreRenewedAtHalfOfTheirValidity) {
  ASSERT_TRUE(Up().ok());
  auto files = Files();
  absl::Time now = kNow + kServiceValidity / 2;
  auto report = Up(now);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->done.size(), 5u);
  ExpectWhole(now);

  now = kNow + kOperatorValidity / 2;
  report = Up(now);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->done.size(), 6u);
  ExpectWhole(now);

  // Long after everything except the root has expired.
  now = kNow + absl::Hours(24 * 365 * 6);
  report = Up(now);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->done.size(), 7u);
  ExpectWhole(now);
  // No key has changed.
  for (const auto& [name, content] : Files()) {
    const bool is_key = name.ends_with(".key") || name.ends_with("key.pem");
    EXPECT_TRUE(!is_key || content == files[name]) << name;
  }
  EXPECT_EQ(ReadContext(home_.ContextFile())->private_key_pem.view(),
            ReadContext(home_.OperatorContextFile("ann"))->private_key_pem.view());

  Remove("root/ca.key");
  EXPECT_EQ(ReasonOfUp(now + absl::Hours(24 * 365 * 6)), "ROOT_KEY_OFFLINE");
}

// Follows docs/security.md: both roots are trusted first, then the new one replaces the old one.
TEST_F(BootstrapTest, RootIsReplacedInTwoSteps) {
  ASSERT_TRUE(Up().ok());
  const auto old = Files();
  const std::vector<std::string> authorities = {
      "root/ca.key", "root/ca.crt", "aggregator/intermediate.key", "aggregator/intermediate.crt"};
  for (const std::string& name : authorities) Remove(name);
  const PrivateKey key = *PrivateKey::Generate();
  const FleetRoot root = *FleetRoot::Create(*ReadFleet(home_), key, kNow);
  ASSERT_TRUE(WriteFileAtomically(home_.RootKey(), key.ToPkcs8Pem()->view()).ok());
  ASSERT_TRUE(WriteFileAtomically(home_.RootCertificate(), root.certificate().ToPem()).ok());

  const absl::Time later = kNow + kServiceValidity / 2;  // everything is due for renewal
  EXPECT_EQ(ReasonOfUp(later), "AUTHORITY_MISMATCH");    // the new root is not trusted yet
  for (const ServiceRole role : {ServiceRole::kAggregator, ServiceRole::kStatus,
                                 ServiceRole::kGateway, ServiceRole::kRelay, ServiceRole::kJobs}) {
    ASSERT_TRUE(WriteFileAtomically(home_.TlsFolder(role) + "/ca.pem",
                                    old.at("aggregator/tls/ca.pem") + root.certificate().ToPem())
                    .ok());
  }
  const auto report = Up(later);
  ASSERT_TRUE(report.ok()) << report.status();
  ExpectWhole(later);
  const auto intermediate = LoadIntermediate(home_.ServiceFolder(ServiceRole::kAggregator));
  EXPECT_EQ(intermediate->root(), root.certificate());
  EXPECT_EQ(ParseChain(ReadContext(home_.ContextFile())->fleet_ca_pem)->back(), root.certificate());
}

TEST_F(BootstrapTest, NewHostsAndAddressesAreStored) {
  ASSERT_TRUE(Up().ok());
  options_.hosts = {"central.example.com", "10.0.0.5", "fe80:0::1"};
  options_.status_targets = {"10.0.0.5:2"};
  options_.relay_targets = {"10.0.0.5:3"};
  ASSERT_TRUE(Up().ok());
  const auto hosts =
      LoadCertificateTrio(home_.TlsFolder(ServiceRole::kGateway), ServiceRole::kGateway, kNow)
          ->chain.front()
          .Hosts();
  EXPECT_EQ(hosts, (std::vector<std::string>{"localhost", "127.0.0.1", "::1", "central.example.com",
                                             "10.0.0.5", "fe80::1"}));
  const auto context = ReadContext(home_.ContextFile());
  EXPECT_EQ(context->status_targets, options_.status_targets);
  EXPECT_EQ(context->relay_targets, options_.relay_targets);
  EXPECT_EQ(context->aggregator_targets, options_.aggregator_targets);
  EXPECT_TRUE(Up()->done.empty());

  options_.hosts = {"[::1]:80"};
  EXPECT_EQ(ReasonOfUp(), "INVALID_HOST");
}

TEST_F(BootstrapTest, AnotherFleetNameIsRefused) {
  EXPECT_EQ(ReasonOf(ReadFleet(home_).status()), "HOME_NOT_SET_UP");
  options_.fleet = "Not One";
  EXPECT_EQ(ReasonOfUp(), "INVALID_FLEET");
  options_.fleet = "a.example.com";
  ASSERT_TRUE(Up().ok());
  EXPECT_EQ(*ReadFleet(home_), "a.example.com");
  options_.fleet = "b.example.com";
  EXPECT_EQ(ReasonOfUp(), "FLEET_EXISTS");
  ASSERT_TRUE(WriteFileAtomically(home_.FleetFile(), "{}").ok());
  EXPECT_EQ(ReasonOfUp(), "HOME_INCOMPLETE");
}

TEST_F(BootstrapTest, ConcurrentCallsCreateOneFleet) {
  std::vector<std::thread> threads;
  std::vector<absl::StatusOr<BootstrapReport>> reports(4, absl::UnknownError(""));
  for (auto& report : reports) threads.emplace_back([&] { report = Up(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& report : reports) {
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->fleet, reports[0]->fleet);
  }
  ExpectWhole();
}

}  // namespace
}  // namespace muster
