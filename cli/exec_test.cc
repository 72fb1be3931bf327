// Tests `muster exec` with a root relay whose answers are lost. testing/e2e/exec_test.go tests it
// with nodes.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/program_fixture.h"
#include "cli/supervisor/test_folder.h"
#include "muster/v1/jobs.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/errors/jobs.h"
#include "services/common/identity/context.h"
#include "services/common/identity/secret.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Receives each submission and gives the prepared answers in turn; the last one again and again.
class FakeRootRelay final : public v1::JobService::Service {
 public:
  FakeRootRelay(const testing::TestFleet& fleet, std::vector<grpc::Status> answers)
      : answers_(std::move(answers)) {
    const auto relay = fleet.Issue(ServiceIdentity{ServiceRole::kRelay, "root"});
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({relay.key_pem, relay.chain_pem});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  std::string target() const { return absl::StrCat("127.0.0.1:", port_); }

  // Returns the commands of the submissions.
  std::vector<std::string> commands() const {
    const MutexLock lock(mutex_);
    return commands_;
  }

  // Returns the job of the first submission.
  std::string job() const {
    v1::Command command;
    EXPECT_TRUE(command.ParseFromString(commands().at(0)));
    return command.job();
  }

 private:
  grpc::Status SubmitJob(grpc::ServerContext*, const v1::SubmitJobRequest* request,
                         v1::Job* response) override {
    v1::Command command;
    EXPECT_TRUE(command.ParseFromString(request->command().command()));
    response->set_job(command.job());
    const MutexLock lock(mutex_);
    commands_.push_back(request->command().command());
    const grpc::Status answer = answers_.front();
    if (answers_.size() > 1) answers_.erase(answers_.begin());
    return answer;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable Mutex mutex_;
  std::vector<grpc::Status> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> commands_ ABSL_GUARDED_BY(mutex_);
};

class ExecTest : public ::testing::Test {
 protected:
  Outcome Exec(const FakeRootRelay& relay) {
    OperatorContext context;
    context.fleet = fleet_.name();
    context.aggregator_targets = {absl::StrCat("127.0.0.1:", fleet_.port())};
    context.relay_targets = {relay.target()};
    context.fleet_ca_pem = fleet_.fleet_ca_pem();
    context.certificate_chain_pem = fleet_.admin().chain_pem;
    context.private_key_pem = Secret(fleet_.admin().key_pem);
    EXPECT_TRUE(WriteContext(folder_ / "context.json", context).ok());
    return Muster({"exec", "--detach", "--node", "n1", "--context", folder_ / "context.json", "--",
                   "/bin/true"});
  }

  const supervisor::TestFolder folder_;
  testing::TestFleet fleet_;
};

TEST_F(ExecTest, SubmissionWhoseAnswerWasLostIsRepeatedUnchanged) {
  const FakeRootRelay relay(fleet_,
                            {{grpc::StatusCode::UNAVAILABLE, "Socket closed"}, grpc::Status::OK});
  const Outcome outcome = Exec(relay);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, relay.job() + "\n");
  ASSERT_EQ(relay.commands().size(), 2u);
  EXPECT_EQ(relay.commands()[0], relay.commands()[1]) << "the relay would run another job";
}

TEST_F(ExecTest, JobIsNamedIfItsSubmissionHasNoAnswer) {
  const FakeRootRelay relay(fleet_, {{grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"}});
  const Outcome outcome = Exec(relay);
  EXPECT_EQ(outcome.code, 68) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("muster job cancel " + relay.job()));
}

TEST_F(ExecTest, JobIsNamedIfALaterSubmissionIsRefused) {
  const FakeRootRelay relay(
      fleet_, {{grpc::StatusCode::UNAVAILABLE, "Socket closed"}, ToGrpc(errors::TooManyJobs(1))});
  const Outcome outcome = Exec(relay);
  EXPECT_EQ(outcome.code, 72) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("muster job cancel " + relay.job()));
}

TEST_F(ExecTest, RefusedJobIsNotNamed) {
  const FakeRootRelay relay(fleet_, {ToGrpc(errors::TooManyJobs(1))});
  const Outcome outcome = Exec(relay);
  EXPECT_EQ(outcome.code, 72) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("muster job cancel")));
}

}  // namespace
}  // namespace muster::cli
