// A stored text that is not UTF-8 stops neither the feed nor the status service.
#include <grpcpp/grpcpp.h>
#include <sqlite3.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/results.grpc.pb.h"
#include "muster/v1/runs.grpc.pb.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/test_status.h"

namespace muster {
namespace {

using testing::PairOf;
using testing::SmallResult;
using testing::TestFleet;
using testing::TestStatus;

constexpr char kReplacement[] = "\xef\xbf\xbd";

class BadTextTest : public ::testing::Test {
 protected:
  // Delivers an error; its text is the body.
  absl::Status SubmitError(const std::string& run, const std::string& node,
                           const std::string& text) {
    v1::SubmitResultRequest request = SmallResult(run, "hostfacts", node, text);
    request.mutable_description()->set_is_error(true);
    grpc::ClientContext context;
    v1::Result result;
    return FromGrpc(
        v1::ResultService::NewStub(fleet_.Connect(fleet_.Credential(run, "hostfacts", node)))
            ->SubmitResult(&context, request, &result));
  }

  // Executes a statement on the aggregator's store while the aggregator is stopped.
  void WriteIntoStore(const std::string& sql) {
    fleet_.Stop();
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((fleet_.config.state_folder + "/state.db").c_str(), &database),
              SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
    fleet_.Start();
  }

  std::string ErrorOf(TestStatus& status, const std::string& run, const std::string& node) {
    return PairOf(status.Await(run,
                               [&](const auto& seen) {
                                 return PairOf(seen, node).outcome() == v1::OUTCOME_ERROR;
                               }),
                  node)
        .error();
  }

  v1::Result GetResult(const std::string& run, const std::string& node) {
    v1::GetResultRequest request;
    *request.mutable_key() = SmallResult(run, "hostfacts", node, "").description().key();
    grpc::ClientContext context;
    v1::Result result;
    const grpc::Status status = v1::ResultService::NewStub(fleet_.Connect(fleet_.admin()))
                                    ->GetResult(&context, request, &result);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return result;
  }

  TestFleet fleet_;
};

TEST_F(BadTextTest, ErrorThatIsNotUtf8IsCommittedAndTheFeedContinues) {
  TestStatus status(fleet_);
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1", "n2"}).id();
  EXPECT_TRUE(SubmitError(run, "n1", "caf\xe9").ok());
  EXPECT_EQ(ErrorOf(status, run, "n1"), absl::StrCat("caf", kReplacement));
  EXPECT_EQ(GetResult(run, "n1").error(), absl::StrCat("caf", kReplacement));
  // The newest run is seen, now and after a restart.
  const std::string next = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  EXPECT_TRUE(SubmitError(next, "n1", "plain").ok());
  EXPECT_EQ(ErrorOf(status, next, "n1"), "plain");
  status.Stop();
  status.Start();
  EXPECT_EQ(ErrorOf(status, run, "n1"), absl::StrCat("caf", kReplacement));
}

TEST_F(BadTextTest, StoredTextThatIsNotUtf8StopsNeitherTheFeedNorTheStart) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  EXPECT_TRUE(SubmitError(run, "n1", "plain").ok());
  const std::string bad = "= CAST(x'636166e9' AS TEXT)";
  WriteIntoStore(absl::StrCat(
      "UPDATE runs SET title ", bad, ", reason ", bad, ", created_by ", bad, ", listener_fault ",
      bad, ", archive_file_name ", bad, "; UPDATE run_plugins SET definition_yaml ", bad,
      "; UPDATE results SET error ", bad, ", file_name ", bad, ", media_type ", bad, ", uri ", bad,
      ", vouched_by ", bad, "; UPDATE changes SET text ", bad, ";"));
  TestStatus status(fleet_);
  EXPECT_EQ(ErrorOf(status, run, "n1"), absl::StrCat("caf", kReplacement));
  EXPECT_EQ(GetResult(run, "n1").file_name(), absl::StrCat("caf", kReplacement));
  const std::string next = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  EXPECT_TRUE(SubmitError(next, "n1", "plain").ok());
  EXPECT_EQ(ErrorOf(status, next, "n1"), "plain");
  v1::GetRunRequest request;
  request.set_run(run);
  grpc::ClientContext context;
  v1::Run stored;
  EXPECT_TRUE(v1::RunService::NewStub(fleet_.Connect(fleet_.admin()))
                  ->GetRun(&context, request, &stored)
                  .ok());
  EXPECT_EQ(stored.title(), absl::StrCat("caf", kReplacement));
}

}  // namespace
}  // namespace muster
