#include "services/common/rpc/status.h"

#include <string>

#include "google/rpc/status.pb.h"
#include "muster/v1/errors.pb.h"
#include "services/common/base/error.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/rpc/connection_error.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

constexpr size_t kMaxMessage = 1024;

// File names and output of programs may contain any bytes. A receiver cannot parse a status with
// such a detail.
std::string Bounded(std::string_view text) {
  std::string clean = CleanUtf8(text);
  if (clean.size() <= kMaxMessage) return clean;
  return std::string(CutUtf8(clean, kMaxMessage - 3)) + "...";
}

std::string EncodeDetails(const absl::Status& status, const std::string& message) {
  muster::v1::ErrorDetail detail;
  detail.set_reason(ReasonOf(status));
  detail.set_next_step(Bounded(NextStepOf(status)));
  if (const auto delay = RetryAfterOf(status)) {
    ToProto(*delay, detail.mutable_retry_after());
  }
  detail.set_newest_attempt(NewestAttemptOf(status).value_or(0));
  google::rpc::Status wire;
  wire.set_code(static_cast<int>(status.code()));
  wire.set_message(message);
  wire.add_details()->PackFrom(detail);
  return wire.SerializeAsString();
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message = Bounded(ToStd(status.message()));
  const auto code = static_cast<grpc::StatusCode>(status.code());
  if (ReasonOf(status).empty()) return {code, message};
  return {code, message, EncodeDetails(status, message)};
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  google::rpc::Status wire;
  muster::v1::ErrorDetail detail;
  if (wire.ParseFromString(status.error_details()) && wire.details_size() > 0 &&
      wire.details(0).UnpackTo(&detail)) {
    absl::Status error =
        MakeError(code, detail.reason(), status.error_message(), detail.next_step());
    if (detail.has_retry_after()) {
      error = WithRetryAfter(error, FromProto(detail.retry_after()));
    }
    if (detail.newest_attempt() != 0) error = WithNewestAttempt(error, detail.newest_attempt());
    return error;
  }
  if (code == absl::StatusCode::kUnavailable) {
    return ConnectionErrorOf(status.error_message());
  }
  return absl::Status(code, status.error_message());
}

}  // namespace muster
