// The change feed over mutual TLS: what each role receives.
#include <grpcpp/client_context.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "muster/v1/changes.grpc.pb.h"
#include "muster/v1/identities.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/identity/signing_request.h"
#include "services/common/rpc/status.h"
#include "testing/fixtures/test_call.h"
#include "testing/fixtures/test_fleet.h"

namespace muster {
namespace {

using testing::TestFleet;
using testing::TestIdentity;

class ChangeServiceTest : public ::testing::Test {
 protected:
  // A stream from the snapshot on.
  class Feed {
   public:
    Feed(TestFleet& fleet, ServiceRole role, const std::string& pairs_of_run = "")
        : stub_(v1::ChangeService::NewStub(
              fleet.Connect(fleet.Issue(ServiceIdentity{role, "feed"})))) {
      v1::FollowChangesRequest request;
      request.set_pairs_of_run(pairs_of_run);
      context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
      stream_ = stub_->FollowChanges(&context_, request);
    }
    ~Feed() { context_.TryCancel(); }

    // Returns the events until the snapshot is complete, or until `subject` is revoked, as JSON
    // would name them; without heartbeats.
    std::vector<std::string> ReadUntil(const std::string& subject) {
      std::vector<std::string> events;
      v1::FollowChangesResponse event;
      while (stream_->Read(&event)) {
        if (event.has_heartbeat()) continue;
        const auto* field = v1::FollowChangesResponse::descriptor()->FindFieldByNumber(
            static_cast<int>(event.event_case()));
        events.push_back(event.has_revoked() ? event.revoked().subject() : field->name());
        if (events.back() == subject) return events;
      }
      ADD_FAILURE() << "the stream ended: " << FromGrpc(stream_->Finish());
      return events;
    }

    absl::Status ReadToEnd() {
      v1::FollowChangesResponse event;
      while (stream_->Read(&event)) {
      }
      return FromGrpc(stream_->Finish());
    }

   private:
    const std::unique_ptr<v1::ChangeService::Stub> stub_;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReader<v1::FollowChangesResponse>> stream_;
  };

  // Adds an operator and revokes it; returns its URI.
  std::string Revoked(const std::string& name) {
    v1::AddOperatorRequest add;
    add.set_name(name);
    add.set_csr_pem(*CreateSigningRequest(*PrivateKey::Generate()));
    const auto channel = fleet_.Connect(fleet_.admin());
    EXPECT_TRUE(testing::CallUnary<v1::IdentityService>(
                    channel, &v1::IdentityService::Stub::AddOperator, add, {})
                    .ok());
    v1::RevokeOperatorRequest revoke;
    revoke.set_name(name);
    const auto revoked = testing::CallUnary<v1::IdentityService>(
        channel, &v1::IdentityService::Stub::RevokeOperator, revoke, {});
    EXPECT_TRUE(revoked.ok()) << revoked.status();
    return revoked.ok() ? revoked->uri() : "";
  }

  TestFleet fleet_;
};

TEST_F(ChangeServiceTest, JobsServiceReceivesOnlyIdentities) {
  fleet_.CreateRun({"hostfacts"}, {"n1", "n2"});
  const std::string eve = Revoked("eve");
  Feed feed(fleet_, ServiceRole::kJobs);
  // The operators are the fleet's own and eve.
  const std::string recorded = "operator_recorded";
  const std::vector<std::string> snapshot = {"snapshot_begin", eve, recorded, recorded,
                                             "snapshot_end"};
  EXPECT_EQ(feed.ReadUntil("snapshot_end"), snapshot);
  fleet_.CreateRun({"hostfacts"}, {"n1"});
  const std::string bob = Revoked("bob");
  EXPECT_EQ(feed.ReadUntil(bob), (std::vector<std::string>{recorded, bob}));
}

TEST_F(ChangeServiceTest, JobsServiceReceivesNoPairsOfARun) {
  const std::string run = fleet_.CreateRun({"hostfacts"}, {"n1"}).id();
  EXPECT_EQ(ReasonOf(Feed(fleet_, ServiceRole::kJobs, run).ReadToEnd()), "NOT_YOURS");
  EXPECT_TRUE(Feed(fleet_, ServiceRole::kStatus, run).ReadToEnd().ok());
}

TEST_F(ChangeServiceTest, StatusServiceReceivesRunsAndPairs) {
  fleet_.CreateRun({"hostfacts"}, {"n1"});
  Feed feed(fleet_, ServiceRole::kStatus);
  const std::vector<std::string> snapshot = {"snapshot_begin", "run", "pairs", "operator_recorded",
                                             "snapshot_end"};
  EXPECT_EQ(feed.ReadUntil("snapshot_end"), snapshot);
}

}  // namespace
}  // namespace muster
