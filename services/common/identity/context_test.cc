#include "services/common/identity/context.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-01.muster";
const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

class ContextTest : public ::testing::Test {
 protected:
  ContextTest()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~ContextTest() override { std::filesystem::remove_all(folder_); }

  std::string Path() { return folder_ / "context.json"; }

  OperatorContext Good(const FleetName& name = UserIdentity{"ann"}) {
    const PrivateKey key = *PrivateKey::Generate();
    const FleetRoot root = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), kNow);
    const PrivateKey intermediate_key = *PrivateKey::Generate();
    const Intermediate intermediate = *Intermediate::Load(
        kFleet, intermediate_key, *root.SignIntermediate(intermediate_key.public_key(), kNow),
        root.certificate());
    OperatorContext context;
    context.fleet = kFleet;
    context.aggregator_targets = {"10.0.0.5:7443", "[::1]:7443"};
    context.status_targets = {"10.0.0.5:7444"};
    context.gateway_urls = {"https://10.0.0.5:7442"};
    context.relay_targets = {"10.0.0.5:7445"};
    context.fleet_ca_pem = root.certificate().ToPem();
    context.certificate_chain_pem = ChainToPem(
        std::vector{*intermediate.Issue(name, key.public_key(), {}, kNow, kNow + kOperatorValidity),
                    intermediate.certificate()});
    context.private_key_pem = *key.ToPkcs8Pem();
    return context;
  }

  // Returns the reason with which a valid context is refused after `change` was applied to its
  // JSON.
  std::string ReasonAfter(const std::function<void(nlohmann::json&)>& change,
                          const std::string& in_message) {
    nlohmann::json json = nlohmann::json::parse(ContextToJson(Good()).view());
    change(json);
    EXPECT_TRUE(WriteFileAtomically(Path(), json.dump()).ok());
    const absl::Status status = ReadContext(Path()).status();
    EXPECT_NE(status.message().find(in_message), absl::string_view::npos) << status;
    EXPECT_NE(status.message().find(Path()), absl::string_view::npos) << status;
    EXPECT_NE(NextStepOf(status), "");
    return ReasonOf(status);
  }

  std::filesystem::path folder_;
};

TEST_F(ContextTest, WrittenContextIsReadAgain) {
  const OperatorContext written = Good();
  ASSERT_TRUE(WriteContext(Path(), written).ok());
  struct stat info{};
  ASSERT_EQ(stat(Path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);

  const auto read = ReadContext(Path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->fleet, written.fleet);
  EXPECT_EQ(read->aggregator_targets, written.aggregator_targets);
  EXPECT_EQ(read->status_targets, written.status_targets);
  EXPECT_EQ(read->gateway_urls, written.gateway_urls);
  EXPECT_EQ(read->relay_targets, written.relay_targets);
  EXPECT_EQ(read->fleet_ca_pem, written.fleet_ca_pem);
  EXPECT_EQ(read->certificate_chain_pem, written.certificate_chain_pem);
  EXPECT_EQ(read->private_key_pem.view(), written.private_key_pem.view());

  EXPECT_TRUE(CheckContext(*read, kNow).ok());
  EXPECT_EQ(ReasonOf(CheckContext(*read, kNow + kOperatorValidity + absl::Seconds(1))),
            "CERTIFICATE_EXPIRED");
}

TEST_F(ContextTest, FileWithoutRelaysIsAccepted) {
  nlohmann::json json = nlohmann::json::parse(ContextToJson(Good()).view());
  json.erase("relay_targets");
  ASSERT_TRUE(WriteFileAtomically(Path(), json.dump()).ok());
  const auto read = ReadContext(Path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->relay_targets.empty());
}

TEST_F(ContextTest, FileReadableByOthersIsRefused) {
  EXPECT_EQ(ReasonOf(ReadContext(Path()).status()), "CONTEXT_NOT_FOUND");
  ASSERT_TRUE(WriteContext(Path(), Good()).ok());
  ASSERT_EQ(chmod(Path().c_str(), 0644), 0);
  EXPECT_EQ(ReasonOf(ReadContext(Path()).status()), "SECRET_FILE_EXPOSED");
  ASSERT_EQ(chmod(Path().c_str(), 0600), 0);
  const std::string link = folder_ / "link.json";
  ASSERT_EQ(symlink(Path().c_str(), link.c_str()), 0);
  EXPECT_EQ(ReasonOf(ReadContext(link).status()), "SECRET_FILE_EXPOSED");
  EXPECT_EQ(ReasonOf(ReadContext(folder_).status()), "SECRET_FILE_EXPOSED");
}

TEST_F(ContextTest, ErrorNamesTheFault) {
  EXPECT_EQ(ReasonAfter([](auto& j) { j.erase("fleet"); }, "\"fleet\" is missing"),
            "INVALID_CONTEXT");
  EXPECT_EQ(ReasonAfter([](auto& j) { j["gateway_url"] = "x"; }, "\"gateway_url\" is not known"),
            "INVALID_CONTEXT");
  EXPECT_EQ(ReasonAfter([](auto& j) { j["relay_targets"] = "x"; }, "\"relay_targets\" must be"),
            "INVALID_CONTEXT");
  EXPECT_EQ(ReasonAfter([](auto& j) { j["status_targets"] = "x"; }, "\"status_targets\" must be"),
            "INVALID_CONTEXT");
  EXPECT_EQ(ReasonAfter([](auto& j) { j["fleet"] = 1; }, "\"fleet\" must be a text"),
            "INVALID_CONTEXT");
  EXPECT_EQ(ReasonAfter([](auto& j) { j["fleet"] = "other.muster"; }, "does not belong to fleet"),
            "INVALID_CONTEXT");
  EXPECT_EQ(ReasonAfter([](auto& j) { j["fleet_ca_pem"] = "x"; }, "fleet_ca_pem"),
            "INVALID_CONTEXT");
  EXPECT_EQ(ReasonAfter([](auto& j) { j["private_key_pem"] = "x"; }, "private_key_pem"),
            "INVALID_CONTEXT");
  EXPECT_EQ(ReasonAfter(
                [](auto& j) {
                  j["private_key_pem"] = std::string(PrivateKey::Generate()->ToPkcs8Pem()->view());
                },
                "does not belong to the first certificate"),
            "INVALID_CONTEXT");
  EXPECT_EQ(ReasonAfter([](auto& j) { j = nlohmann::json::array(); }, "not a JSON object"),
            "INVALID_CONTEXT");
  ASSERT_TRUE(WriteFileAtomically(Path(), "{\"fleet\": ").ok());
  EXPECT_EQ(ReasonOf(ReadContext(Path()).status()), "INVALID_CONTEXT");
  ASSERT_TRUE(WriteContext(Path(), Good(NodeIdentity{"n1"})).ok());
  EXPECT_EQ(ReasonOf(ReadContext(Path()).status()), "INVALID_CONTEXT");
}

}  // namespace
}  // namespace muster
