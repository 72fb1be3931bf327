#include "services/simulation/aggregator_machine.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "services/aggregator/convert.h"
#include "services/aggregator/simulation/simulated_fleet.h"
#include "services/common/base/status_macros.h"
#include "services/common/rpc/limits.h"

namespace muster::testing {
namespace {

// As ResultService: a relay needs the signature of the node.
absl::StatusOr<UploadRecord> ToUpload(const v1::OpenUploadRequest& request, const Caller& caller,
                                      const SpooledProofs& proofs) {
  ASSIGN_OR_RETURN(UploadRecord upload, FromProto(request.description(), caller));
  if (RoleOf(caller.identity) == Role::kRelay) {
    RETURN_IF_ERROR(proofs.Check(request.spooled(), caller, &upload));
    upload.size = request.spooled().size();
    upload.sha256 = request.spooled().sha256();
    upload.is_error = request.spooled().is_error();
  } else {
    upload.size = request.has_size() ? request.size() : -1;
    upload.sha256 = request.sha256();
  }
  return upload;
}

}  // namespace

absl::Status AggregatorMachine::Start() {
  ASSIGN_OR_RETURN(life_, SimulatedAggregator::Start(disk, clock));
  proofs_.emplace(SimulatedFleet::kName, SimulatedFleet::Get().root(), life_->store(), clock,
                  [](const Caller&) { return false; });
  return Compare();
}

void AggregatorMachine::Stop() {
  if (!running()) return;
  DropStreams();
  proofs_.reset();
  life_.reset();
}

absl::Status AggregatorMachine::Report(const v1::SubmitResultRequest& report, const Caller& relay) {
  ASSIGN_OR_RETURN(UploadRecord upload, FromProto(report.description(), relay));
  RETURN_IF_ERROR(proofs_->Check(report.spooled(), relay, &upload));
  VerifiedResult verified;
  verified.attempt = upload.attempt;
  verified.relay_report = true;
  ResultRecord& result = verified.result;
  result.key = upload.key;
  result.outcome = Outcome::kError;
  result.size = static_cast<int64_t>(report.body().size());
  result.error = result.body = report.body();
  result.delivery = upload.delivery;
  return life_->Commit(std::move(verified)).status();
}

void AggregatorMachine::OpenUpload(const v1::OpenUploadRequest& request, const Caller& caller,
                                   Opened opened) {
  auto upload = ToUpload(request, caller, *proofs_);
  if (!upload.ok()) return opened(upload.status());
  std::optional<absl::Time> signed_at;
  if (request.has_spooled()) signed_at = AcceptTime(request.spooled());
  life_->uploads().Open(*std::move(upload), PeerOf(caller), signed_at,
                        [opened = std::move(opened)](const absl::StatusOr<OpenedUpload>& outcome) {
                          if (!outcome.ok()) return opened(outcome.status());
                          v1::OpenUploadResponse response;
                          if (outcome->committed) {
                            *response.mutable_committed() = ToProto(*outcome->committed);
                            return opened(response);
                          }
                          response.set_upload_id(outcome->id);
                          response.set_epoch(outcome->epoch);
                          response.set_offset(outcome->offset);
                          response.set_chunk_max(outcome->pace.chunk_max);
                          opened(response);
                        });
}

absl::StatusOr<std::shared_ptr<UploadSession>> AggregatorMachine::FindSession(
    const std::string& id, const Caller& caller) {
  return life_->uploads().Find(id);
}

absl::StatusOr<UploadTicket> AggregatorMachine::CountStream(const std::string& id,
                                                            const Caller& caller) {
  ASSIGN_OR_RETURN(const auto session, life_->uploads().Find(id));
  return life_->uploads().quota().CountStream(caller.identity, session->key().run);
}

void AggregatorMachine::EndSession(UploadSession& session) {
  life_->uploads().Forget(session.id());
  const auto closed = session.shared_from_this();
  if (!session.strand().Post([closed] { closed->Close(); })) std::abort();
}

absl::StatusOr<v1::UploadResponse> AggregatorMachine::Reply(const std::string& upload,
                                                            const std::string& sent,
                                                            const ResultRecord& result) {
  PairHistory& pair = history.runs[result.key.run].pairs[result.key.node];
  Break(pair.Acknowledged(sent, result.sha256));
  v1::UploadResponse response;
  *response.mutable_committed() = ToProto(result);
  return response;
}

absl::Status AggregatorMachine::CheckOpened(const v1::OpenUploadRequest& request,
                                            const v1::OpenUploadResponse& response) {
  if (!response.has_committed()) return absl::OkStatus();
  const v1::ResultKey& key = request.description().key();
  PairHistory& pair = history.runs[key.run()].pairs[key.node()];
  return pair.Acknowledged(request.sha256(), response.committed().sha256());
}

}  // namespace muster::testing
