#include "services/relay/files/share_aggregator_client.h"

#include <chrono>

#include "muster/v1/audit.grpc.pb.h"
#include "muster/v1/enrollment.grpc.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/errors/shares.h"
#include "services/common/rpc/call_later.h"
#include "services/relay/files/share_errors.h"
#include "services/relay/target_lookup.h"

namespace muster {
namespace {

constexpr std::chrono::seconds kAnswerWithin(5);

// Without an answer, the target is accepted.
absl::Status OnlyUnknown(const absl::Status& target) {
  return ReasonOf(target) == "TARGET_UNKNOWN" ? target : absl::OkStatus();
}

}  // namespace

void ShareAggregatorClient::CheckJoined(const std::string& node, Done done) const {
  const auto aggregator = parts_.peers.Aggregator();
  if (aggregator == nullptr) return done(absl::OkStatus());
  v1::GetEnrolledNodeRequest request;
  request.set_node(node);
  CallLater<v1::EnrollmentService, v1::GetEnrolledNodeRequest, v1::EnrolledNode>(
      aggregator, &v1::EnrollmentService::Stub::async::GetEnrolledNode, std::move(request),
      kAnswerWithin,
      [node, done = std::move(done)](const absl::Status& status, const v1::EnrolledNode& found) {
        done(OnlyUnknown(JudgeTarget(node, status, found)));
      });
}

absl::Status ShareAggregatorClient::AwaitJoined(const std::string& node) const {
  const auto aggregator = parts_.peers.Aggregator();
  if (aggregator == nullptr) return absl::OkStatus();
  return OnlyUnknown(
      LookUpTarget(aggregator, node, std::chrono::system_clock::now() + kAnswerWithin));
}

void ShareAggregatorClient::RecordRemoval(const v1::ShareKey& key, const std::string& actor,
                                          const std::string& relay, Done done) const {
  const auto aggregator = parts_.peers.Aggregator();
  if (aggregator == nullptr)
    return done(errors::RemovalNotRecorded("this relay has no connection to the aggregator"));
  v1::RecordShareRemovalRequest request;
  *request.mutable_key() = key;
  request.set_actor(actor);
  request.set_relay(relay);
  CallLater<v1::AuditService, v1::RecordShareRemovalRequest, v1::RecordShareRemovalResponse>(
      aggregator, &v1::AuditService::Stub::async::RecordShareRemoval, std::move(request),
      kAnswerWithin,
      [done = std::move(done)](const absl::Status& status, const v1::RecordShareRemovalResponse&) {
        done(status.ok() ? status : errors::RemovalNotRecorded(ToStd(status.message())));
      });
}

}  // namespace muster
