#include "services/relay/target_lookup.h"

#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "muster/v1/enrollment.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/errors/joining.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Knows "n1", the revoked node "revoked", and fails for "broken".
class FakeEnrollment final : public v1::EnrollmentService::Service {
 public:
  grpc::Status GetEnrolledNode(grpc::ServerContext*, const v1::GetEnrolledNodeRequest* request,
                               v1::EnrolledNode* response) override {
    asked.push_back(request->node());
    if (request->node() == "broken") return {grpc::StatusCode::UNAVAILABLE, "down"};
    if (request->node() == "new") return ToGrpc(errors::NodeNotEnrolled("new"));
    response->set_revoked(request->node() == "revoked");
    return grpc::Status::OK;
  }

  std::vector<std::string> asked;  // read between calls
};

class ExplainUnknownTargetsTest : public ::testing::Test {
 protected:
  auto Explain(const std::vector<std::string>& names,
               std::chrono::system_clock::duration within = std::chrono::minutes(1)) {
    return ExplainUnknownTargets(channel_, names, std::chrono::system_clock::now() + within);
  }

  FakeEnrollment enrollment_;
  std::unique_ptr<grpc::Server> server_ =
      grpc::ServerBuilder().RegisterService(&enrollment_).BuildAndStart();
  std::shared_ptr<grpc::Channel> channel_ = server_->InProcessChannel({});
};

TEST_F(ExplainUnknownTargetsTest, CauseIsEmptyForANodeThatMayAttach) {
  EXPECT_THAT(Explain({"n1", "revoked", "new"}),
              ElementsAre(Pair("n1", ""),
                          Pair("new", "node \"new\" has not joined the fleet, or was removed"),
                          Pair("revoked", "node \"revoked\" was revoked")));
}

TEST_F(ExplainUnknownTargetsTest, AggregatorIsNotAskedAgainAfterAFailure) {
  EXPECT_THAT(Explain({"revoked", "broken", "new"}),
              ElementsAre(Pair("revoked", "node \"revoked\" was revoked")));
  EXPECT_THAT(enrollment_.asked, ElementsAre("revoked", "broken"));
}

TEST_F(ExplainUnknownTargetsTest, AggregatorIsNotAskedPastTheDeadline) {
  EXPECT_THAT(Explain({"revoked", "new"}, std::chrono::seconds(-1)), IsEmpty());
  EXPECT_THAT(enrollment_.asked, IsEmpty());
}

TEST(TargetLookupTest, NodeThatMayAttachIsAccepted) {
  EXPECT_TRUE(JudgeTarget("n1", absl::OkStatus(), {}).ok());
}

TEST(TargetLookupTest, UnusableTargetIsRefusedWithTheCause) {
  const auto message = [](const absl::Status& status, bool revoked, bool is_relay) {
    v1::EnrolledNode found;
    found.set_revoked(revoked);
    found.set_is_relay(is_relay);
    const absl::Status target = JudgeTarget("n1", status, found);
    EXPECT_EQ(ReasonOf(target), "TARGET_UNKNOWN");
    return std::string(target.message());
  };
  EXPECT_EQ(message(errors::NodeNotEnrolled("n1"), false, false),
            "node \"n1\" has not joined the fleet, or was removed");
  EXPECT_EQ(message(absl::OkStatus(), true, false), "node \"n1\" was revoked");
  EXPECT_EQ(message(absl::OkStatus(), false, true), "\"n1\" is a relay, not a node");
  EXPECT_EQ(message(absl::OkStatus(), true, true), "\"n1\" is a relay, not a node");
}

TEST(TargetLookupTest, ErrorOfTheCallIsReturned) {
  EXPECT_TRUE(absl::IsUnavailable(JudgeTarget("n1", absl::UnavailableError("down"), {})));
}

}  // namespace
}  // namespace muster
