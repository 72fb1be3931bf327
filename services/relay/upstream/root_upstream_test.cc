// The upstream of a root relay, with an aggregator that the test plays, without connections.
#include "services/relay/upstream/root_upstream.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "muster/v1/changes.grpc.pb.h"
#include "muster/v1/identities.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/fake_clock.h"
#include "services/common/rpc/call_canceller.h"
#include "services/common/rpc/proto_time.h"
#include "testing/fixtures/await.h"
#include "testing/fixtures/test_commands.h"

namespace muster {
namespace {

using testing::Await;

// Sends the events of the test to each follower.
class FakeChanges final : public v1::ChangeService::Service {
 public:
  void Send(v1::FollowChangesResponse event) {
    MutexLock lock(mutex_);
    events_.push_back(std::move(event));
    changed_.NotifyAll();
  }

  grpc::Status FollowChanges(grpc::ServerContext* context, const v1::FollowChangesRequest*,
                             grpc::ServerWriter<v1::FollowChangesResponse>* writer) override {
    size_t sent = 0;
    while (!context->IsCancelled()) {
      v1::FollowChangesResponse event;
      {
        MutexLock lock(mutex_);
        const bool more = changed_.WaitFor(
            mutex_, absl::Milliseconds(5),
            [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return sent < events_.size(); });
        if (more) {
          event = events_[sent++];
        } else {
          event.mutable_heartbeat();
        }
      }
      writer->Write(event);
    }
    return grpc::Status::CANCELLED;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<v1::FollowChangesResponse> events_ ABSL_GUARDED_BY(mutex_);
};

// Answers with the list, unless the test wants a failure or no answer.
class FakeIdentities final : public v1::IdentityService::Service {
 public:
  void SetList(v1::CommandRevocations list) {
    MutexLock lock(mutex_);
    list_ = std::move(list);
  }

  grpc::Status GetCommandRevocations(grpc::ServerContext* context,
                                     const v1::GetCommandRevocationsRequest*,
                                     v1::CommandRevocations* response) override {
    ++calls;
    if (silent) {
      if (Await([&] { return context->IsCancelled(); })) ++cancelled;
      return grpc::Status::CANCELLED;
    }
    if (failing) return {grpc::StatusCode::UNAVAILABLE, "busy"};
    MutexLock lock(mutex_);
    *response = list_;
    return grpc::Status::OK;
  }

  std::atomic<bool> failing = false;
  std::atomic<bool> silent = false;
  std::atomic<int> calls = 0;
  std::atomic<int> cancelled = 0;

 private:
  Mutex mutex_;
  v1::CommandRevocations list_ ABSL_GUARDED_BY(mutex_);
};

class RootUpstreamTest : public ::testing::Test {
 protected:
  RootUpstreamTest() {
    SetRevoked("alice", 1);
    grpc::ServerBuilder builder;
    builder.RegisterService(&changes_);
    builder.RegisterService(&identities_);
    server_ = builder.BuildAndStart();
  }
  ~RootUpstreamTest() override {
    upstream_.reset();
    server_->Shutdown();
  }

  // Begins to follow the feed, which has no event yet.
  void Start() {
    const auto channel = server_->InProcessChannel({});
    jobs_ = server_->InProcessChannel({});
    upstream_ = std::make_unique<RootUpstream>(
        topology_, trust_, operators_, offers_, redeliveries_,
        RootUpstream::Services{[channel] { return channel; }, [channel] { return channel; },
                               [this] { return jobs_; }},
        [this] { ++lists_; }, clock_, clock_, executor_);
    clock_.Advance(absl::ZeroDuration());
  }
  void SendSnapshot() {
    v1::FollowChangesResponse begin;
    begin.mutable_snapshot_begin();
    changes_.Send(begin);
    SendRevoked("spiffe://fleet-0badcafe.muster/node/n1");
    v1::FollowChangesResponse end;
    end.mutable_snapshot_end();
    changes_.Send(end);
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    executor_.AwaitIdle();
  }
  bool AwaitLists(int count) {
    return Await([&] { return lists_ == count; });
  }
  void SetRevoked(const std::string& user, int64_t version) {
    v1::CommandRevocations list = commands_.Revoke(user, version);
    list.set_command_ca_pem(commands_.authority().certificate().ToPem());
    identities_.SetList(std::move(list));
  }
  void SendRevoked(const std::string& subject) {
    v1::FollowChangesResponse revoked;
    revoked.mutable_revoked()->set_subject(subject);
    changes_.Send(revoked);
  }
  bool IsRevokedSigner(const std::string& user) const {
    return trust_.IsRevokedSigner({kTestFleet, UserIdentity{user}});
  }
  bool IsRevoked(const std::string& node) const {
    return trust_.IsRevoked({{kTestFleet, NodeIdentity{node}}, std::nullopt, "", ""});
  }

  TestCommands commands_;
  FakeChanges changes_;
  FakeIdentities identities_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> jobs_;
  FakeClock clock_{absl::Now()};
  Executor executor_{{.name = "background", .threads = 2}};
  Topology topology_{{.name = "root"}, clock_};
  CallCanceller canceller_;
  Trust trust_{kTestFleet, [] { return std::vector<Certificate>(); }, topology_, canceller_,
               clock_};
  RecordedOperators operators_{kTestFleet, clock_};
  RunOffers offers_{topology_, clock_};
  RedeliveryRequests redeliveries_{topology_, clock_};
  std::atomic<int> lists_ = 0;  // of command revocations that arrived
  std::unique_ptr<RootUpstream> upstream_;
};

TEST_F(RootUpstreamTest, JobsServiceHasAChannelAndAnErrorOfItsOwn) {
  Start();
  EXPECT_EQ(upstream_->Jobs(), jobs_);
  EXPECT_NE(upstream_->Status(), jobs_);
  EXPECT_EQ(ReasonOf(upstream_->JobsUnreachable()), "JOBS_UNREACHABLE");
  EXPECT_TRUE(RetryAfterOf(upstream_->JobsUnreachable()));
}

TEST_F(RootUpstreamTest, FirstSnapshotConnectsAndTheCommandRevocationsFollow) {
  Start();
  SendSnapshot();
  ASSERT_TRUE(AwaitLists(1));
  EXPECT_TRUE(upstream_->connected());
  EXPECT_TRUE(upstream_->caught_up());
  EXPECT_TRUE(upstream_->command_ca());
  EXPECT_TRUE(IsRevokedSigner("alice"));
  EXPECT_TRUE(IsRevoked("n1"));
}

TEST_F(RootUpstreamTest, ListenersAreCalledOnceTheConnectionWorks) {
  std::atomic<int> changes = 0;
  Start();
  const auto watch = upstream_->OnChange([&] { ++changes; });
  EXPECT_FALSE(upstream_->connected());
  SendSnapshot();
  ASSERT_TRUE(AwaitLists(1));
  EXPECT_EQ(changes, 1);
}

TEST_F(RootUpstreamTest, ListenersAreCalledWhenARunHasNotEndedAfterAll) {
  std::atomic<int> changes = 0;
  Start();
  SendSnapshot();
  ASSERT_TRUE(AwaitLists(1));
  const auto watch = upstream_->OnChange([&] { ++changes; });
  for (const auto state : {v1::RUN_STATE_COMPLETE, v1::RUN_STATE_RUNNING}) {
    v1::FollowChangesResponse event;
    event.mutable_run()->set_id("r");
    event.mutable_run()->set_state(state);
    ToProto(clock_.Now(), event.mutable_run()->mutable_deadline());
    changes_.Send(event);
  }
  EXPECT_TRUE(Await([&] { return changes == 1; }));
}

TEST_F(RootUpstreamTest, RevocationInTheFeedUpdatesTheListAtOnce) {
  Start();
  SendSnapshot();
  ASSERT_TRUE(AwaitLists(1));
  SetRevoked("bob", 2);
  SendRevoked("spiffe://fleet-0badcafe.muster/user/bob");
  ASSERT_TRUE(AwaitLists(2));
  EXPECT_TRUE(IsRevokedSigner("bob"));
}

TEST_F(RootUpstreamTest, GatewayForwardsOnlyOperatorsOfTheFeed) {
  Start();
  Caller caller{{kTestFleet, UserIdentity{"ann"}}, std::nullopt, "", ""};
  caller.via = Identity{kTestFleet, ServiceIdentity{ServiceRole::kGateway, "g"}};
  SendSnapshot();
  ASSERT_TRUE(Await([&] { return !operators_.Check(caller).ok(); }));
  v1::FollowChangesResponse recorded;
  recorded.mutable_operator_recorded()->set_uri("spiffe://fleet-0badcafe.muster/user/ann");
  ToProto(clock_.Now() + absl::Hours(1), recorded.mutable_operator_recorded()->mutable_expires());
  changes_.Send(recorded);
  EXPECT_TRUE(Await([&] { return operators_.Check(caller).ok(); }));
}

TEST_F(RootUpstreamTest, ListIsRequestedEveryMinute) {
  Start();
  SendSnapshot();
  ASSERT_TRUE(AwaitLists(1));
  executor_.AwaitIdle();
  Advance(absl::Seconds(59));
  EXPECT_EQ(identities_.calls, 1);
  Advance(absl::Seconds(2));
  EXPECT_TRUE(AwaitLists(2));
}

TEST_F(RootUpstreamTest, FailedCallIsRepeated) {
  identities_.failing = true;
  Start();
  SendSnapshot();
  ASSERT_TRUE(Await([&] {
    Advance(absl::Milliseconds(100));
    return identities_.calls >= 2;
  }));
  EXPECT_FALSE(upstream_->command_ca());
  identities_.failing = false;
  EXPECT_TRUE(Await([&] {
    Advance(absl::Milliseconds(100));
    return lists_ == 1;
  }));
  EXPECT_TRUE(upstream_->command_ca());
}

TEST_F(RootUpstreamTest, ListWithoutACertificateIsAFailure) {
  identities_.SetList({});
  Start();
  SendSnapshot();
  ASSERT_TRUE(Await([&] {
    Advance(absl::Seconds(1));
    return identities_.calls >= 2;
  }));
  EXPECT_EQ(lists_, 0);
}

TEST_F(RootUpstreamTest, DestructorCancelsAnOpenCall) {
  identities_.silent = true;
  Start();
  SendSnapshot();
  ASSERT_TRUE(Await([&] { return identities_.calls == 1; }));
  upstream_.reset();
  EXPECT_TRUE(Await([&] { return identities_.cancelled == 1; }));
}

}  // namespace
}  // namespace muster
