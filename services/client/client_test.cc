#include "services/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "services/client/test_listener.h"
#include "services/client/test_peer.h"
#include "services/common/errors/results.h"

namespace muster::client {
namespace {

using ::testing::HasSubstr;

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() : folder_(::testing::TempDir() + "/client_test"), peer_(fleet_) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    peer_.Start();
    config_.grpc_targets = {peer_.target()};
    config_.results_dir = folder_;
    config_.done_file_delay = std::chrono::milliseconds(0);
  }
  ~ClientTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Client> Make() {
    Status status;
    auto client = Client::Create(config_, &status);
    EXPECT_TRUE(client != nullptr) << status.message;
    return client;
  }

  Status Fault() {
    Status status;
    EXPECT_EQ(Client::Create(config_, &status), nullptr);
    return status;
  }

  std::string Write(const std::string& name, const std::string& body) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << body;
    return path;
  }

  const TestFleet fleet_ = TestFleet::Make();
  const std::string folder_;
  TestPeer peer_;
  Config config_ = fleet_.ConfigOf("n1");
};

TEST_F(ClientTest, LinkIsNotDeliveredIfThePathHadNone) {
  Write("target", "{}");
  const std::string link = folder_ + "/link";
  std::filesystem::create_symlink(folder_ + "/target", link);
  const SubmitOptions options = {.no_links = true};
  const Delivery refused = Make()->SubmitFile(link, options);
  EXPECT_EQ(refused.status.code, Code::kBadConfig);
  EXPECT_NE(refused.status.message.find("not a regular file"), std::string::npos);
  EXPECT_FALSE(peer_.committed());
  const std::string real = std::filesystem::canonical(link);
  EXPECT_TRUE(Make()->SubmitFile(real, options).status.ok());
  EXPECT_TRUE(Make()->SubmitFile(link, {}).status.ok());
}

TEST_F(ClientTest, FileIsDeliveredWithNameAndType) {
  const Delivery delivery = Make()->SubmitFile(Write("facts.json", "{}"), {});
  ASSERT_TRUE(delivery.status.ok()) << delivery.status.message;
  EXPECT_EQ(delivery.receipt.size, 2);
  EXPECT_EQ(delivery.receipt.sha256,
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
  EXPECT_EQ(peer_.committed()->description.file_name(), "facts.json");
  EXPECT_EQ(peer_.committed()->description.media_type(), "application/json");
}

TEST_F(ClientTest, StreamIsDelivered) {
  std::string left(300'000, 'x');
  const Reader reader = [&](char* buffer, size_t size) -> std::ptrdiff_t {
    const size_t count = std::min({size, left.size(), size_t{1000}});
    left.copy(buffer, count);
    left.erase(0, count);
    return static_cast<std::ptrdiff_t>(count);
  };
  const Delivery delivery = Make()->SubmitStream(reader, {"text/plain", "out.txt"});
  ASSERT_TRUE(delivery.status.ok()) << delivery.status.message;
  EXPECT_EQ(peer_.committed()->body, std::string(300'000, 'x'));
  EXPECT_EQ(peer_.committed()->description.file_name(), "out.txt");
}

TEST_F(ClientTest, ResultThatTheServiceFindsTooLargeIsAnErrorResultWithTheLimit) {
  bool refused = false;
  peer_.judge = [&] {
    return std::exchange(refused, true) ? absl::OkStatus() : errors::ResultOverLimit(1'000'000);
  };
  const Delivery delivery = Make()->SubmitFile(Write("large", "large"), {});
  EXPECT_EQ(delivery.status.code, Code::kErrorDelivered) << delivery.status.message;
  EXPECT_TRUE(peer_.committed()->description.is_error());
  EXPECT_NE(peer_.committed()->body.find("1000000"), std::string::npos) << peer_.committed()->body;
}

TEST_F(ClientTest, FailedStreamIsAnErrorResult) {
  const Reader reader = [](char*, size_t) -> std::ptrdiff_t { return -1; };
  const Delivery delivery = Make()->SubmitStream(reader, {});
  EXPECT_EQ(delivery.status.code, Code::kErrorDelivered);
  EXPECT_TRUE(peer_.committed()->description.is_error());
}

TEST_F(ClientTest, GenuineResultReplacesAnError) {
  const auto client = Make();
  EXPECT_EQ(client->SubmitError("no disk").status.code, Code::kErrorDelivered);
  EXPECT_EQ(peer_.committed()->body, "no disk");
  const Delivery genuine = client->SubmitFile(Write("r", "there"), {});
  ASSERT_TRUE(genuine.status.ok()) << genuine.status.message;
  EXPECT_EQ(genuine.receipt.generation, 2);
}

TEST_F(ClientTest, ErrorConflictsWithTheCommittedResult) {
  const auto client = Make();
  EXPECT_EQ(client->SubmitError("no disk").status.code, Code::kErrorDelivered);
  EXPECT_EQ(client->SubmitError("no disk").status.code, Code::kErrorDelivered) << "the same";
  const Status other = client->SubmitError("no space").status;
  EXPECT_EQ(other.code, Code::kConflict) << other.message;
  EXPECT_EQ(other.reason, "RESULT_CONFLICT");
  EXPECT_THAT(other.next_step, HasSubstr("Deliver a genuine result"));
  ASSERT_TRUE(client->SubmitFile(Write("r", "no disk"), {}).status.ok());
  EXPECT_EQ(client->SubmitError("no disk").status.code, Code::kConflict) << "a genuine result";
}

TEST_F(ClientTest, TextThatIsNotUtf8IsCleaned) {
  const auto client = Make();
  EXPECT_EQ(client->SubmitError("caf\xe9").status.code, Code::kErrorDelivered);
  EXPECT_EQ(peer_.committed()->body, "caf\xef\xbf\xbd");
  const Delivery delivery = client->SubmitFile(Write("caf\xe9.json", "{}"), {});
  ASSERT_TRUE(delivery.status.ok()) << delivery.status.message;
  EXPECT_EQ(peer_.committed()->description.file_name(), "caf\xef\xbf\xbd.json");
  EXPECT_EQ(peer_.committed()->description.media_type(), "application/json");
}

TEST_F(ClientTest, TooLargeFileIsAnErrorResult) {
  config_.max_result_bytes = 10;
  const Delivery delivery = Make()->SubmitFile(Write("r", "more than ten bytes"), {});
  EXPECT_EQ(delivery.status.code, Code::kErrorDelivered);
  EXPECT_EQ(delivery.status.reason, "RESULT_TOO_LARGE");
  EXPECT_THAT(peer_.committed()->body, HasSubstr("RESULT_TOO_LARGE"));
}

TEST_F(ClientTest, ConflictOfTheErrorInPlaceOfAFileKeepsItsCause) {
  config_.max_result_bytes = 10;
  const auto client = Make();
  EXPECT_EQ(client->SubmitError("no disk").status.code, Code::kErrorDelivered);
  const Delivery delivery = client->SubmitFile(Write("r", "more than ten bytes"), {});
  EXPECT_EQ(delivery.status.code, Code::kConflict);
  EXPECT_TRUE(delivery.is_error);
  EXPECT_THAT(delivery.status.message, HasSubstr("not delivered: RESULT_TOO_LARGE"));
  EXPECT_THAT(delivery.status.next_step,
              ::testing::AllOf(HasSubstr("max_result_bytes"), HasSubstr("genuine result")));
}

TEST_F(ClientTest, ConflictOfAGenuineResultIsNoError) {
  const auto client = Make();
  ASSERT_TRUE(client->SubmitFile(Write("r", "one"), {}).status.ok());
  const Delivery delivery = client->SubmitFile(Write("r", "other"), {});
  EXPECT_EQ(delivery.status.code, Code::kConflict);
  EXPECT_FALSE(delivery.is_error);
}

TEST_F(ClientTest, MissingFileIsABadConfiguration) {
  EXPECT_EQ(Make()->SubmitFile(folder_ + "/nothing", {}).status.code, Code::kBadConfig);
}

TEST_F(ClientTest, ResultOfTheDoneFileIsDelivered) {
  Write("out.txt", "found");
  Write("done", " " + folder_ + "/out.txt\n");
  const Delivery delivery = Make()->WaitForDoneFileAndDeliver();
  ASSERT_TRUE(delivery.status.ok()) << delivery.status.message;
  EXPECT_EQ(peer_.committed()->body, "found");
}

TEST_F(ClientTest, InvalidDoneFileIsAnErrorResult) {
  Write("done", folder_ + "/nothing");
  const Delivery delivery = Make()->WaitForDoneFileAndDeliver();
  EXPECT_EQ(delivery.status.code, Code::kErrorDelivered);
  EXPECT_THAT(peer_.committed()->body, HasSubstr("nothing"));
}

TEST_F(ClientTest, ClientWithoutTargetsDeliversByHttps) {
  TestListener listener(fleet_);
  config_.grpc_targets.clear();
  config_.fleet_ca_cert.clear();
  config_.aggregator_url = listener.url();
  config_.ca_cert = fleet_.run_ca_pem;
  const auto client = Make();
  Progress progress;
  progress.message = "half";
  EXPECT_TRUE(client->ReportProgress(progress).ok());
  EXPECT_EQ(client->SubmitError("no disk").status.code, Code::kErrorDelivered);
  ASSERT_TRUE(client->SubmitFile(Write("out.txt", "there"), {}).status.ok());
  const auto seen = listener.seen();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].path, "/api/v1/progress/by-node/n1/facts");
  EXPECT_THAT(seen[0].body, HasSubstr("\"msg\":\"half\""));
  EXPECT_EQ(seen[1].body, R"({"error":"no disk"})");
  EXPECT_EQ(seen[2].body, "there");
}

TEST_F(ClientTest, ResultThatTheListenerFindsTooLargeIsAnErrorResult) {
  TestListener listener(fleet_);
  config_.grpc_targets.clear();
  config_.fleet_ca_cert.clear();
  config_.aggregator_url = listener.url();
  config_.ca_cert = fleet_.run_ca_pem;
  listener.answers = {413};
  const Delivery delivery = Make()->SubmitFile(Write("r", "too large"), {});
  EXPECT_EQ(delivery.status.code, Code::kErrorDelivered) << delivery.status.message;
  EXPECT_EQ(delivery.status.reason, "RESULT_TOO_LARGE");
  EXPECT_THAT(delivery.status.next_step, HasSubstr("raise limits.result_bytes"));
  const auto seen = listener.seen();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_THAT(seen[1].body, HasSubstr("\"error\":\"RESULT_TOO_LARGE"));
}

TEST_F(ClientTest, OldStateIsRemovedAndRecentStateKept) {
  config_.state_dir = folder_ + "/state";
  ASSERT_TRUE(Make()->SubmitFile(Write("r", "x"), {}).status.ok());
  const auto add_old = [&](const std::string& name) {
    const std::string path = config_.state_dir + "/" + name;
    std::ofstream(path) << "{}";
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 100));
    return path;
  };
  const std::string old = add_old("0123456789abcdef0123456789abcdef.json");
  const std::string of_an_agent = add_old("0123456789abcdef0123456789abcdef");
  const std::string foreign = add_old("notes.json");
  ASSERT_TRUE(Make()->SubmitFile(Write("r", "x"), {}).status.ok());
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(of_an_agent)) << "it may have a result";
  EXPECT_TRUE(std::filesystem::exists(foreign)) << "that was not ours";
}

TEST_F(ClientTest, InvalidConfigurationFailsWithTheFault) {
  const Config good = config_;
  config_.plugin = "";
  EXPECT_THAT(Fault().message, HasSubstr("plugin"));
  config_ = good;
  config_.client_key = fleet_.RunCredential("n1").second;
  EXPECT_THAT(Fault().message, HasSubstr("client_key"));
  config_.client_key.clear();
  EXPECT_THAT(Fault().message, HasSubstr("client_key: it is missing"));
  config_ = good;
  config_.grpc_targets.clear();
  EXPECT_THAT(Fault().message, HasSubstr("aggregator_url"));
  config_ = good;
  config_.node = "../up";
  EXPECT_EQ(Fault().code, Code::kBadConfig);
  config_ = good;
  config_.fleet_ca_cert = "none";
  EXPECT_THAT(Fault().message, HasSubstr("fleet_ca_cert"));
}

}  // namespace
}  // namespace muster::client
