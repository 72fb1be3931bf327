// Unary calls of the command line.
#ifndef MUSTER_CLI_RPC_UNARY_CALL_H_
#define MUSTER_CLI_RPC_UNARY_CALL_H_

#include <grpcpp/client_context.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/rpc/retry_period.h"
#include "services/common/rpc/status.h"

namespace muster::cli {

struct UnaryCallOptions {
  absl::Duration limit = kCallLimit;
  absl::Duration retry_for = kRetryFor;
};

// Calls `method` of `stub`, and again while the service is unavailable: it may get the call more
// than once. An interrupt cancels the call. Errors are marked with FromService; `subject` names the
// service.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> CallUnary(
    Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
    const Request& request, const std::string& subject, const UnaryCallOptions& options = {}) {
  const RetryPeriod period(options.retry_for);
  while (true) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + options.limit));
    const InterruptHook hook([&context] { context.TryCancel(); });
    Response response;
    const absl::Status status = FromGrpc((stub.*method)(&context, request, &response));
    if (status.ok()) return response;
    if (!absl::IsUnavailable(status) || !period.Pause()) return FromService(status, subject);
  }
}

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_UNARY_CALL_H_
