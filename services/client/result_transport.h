// A transport for results, which makes one attempt at a time.
#ifndef MUSTER_SERVICES_CLIENT_RESULT_TRANSPORT_H_
#define MUSTER_SERVICES_CLIENT_RESULT_TRANSPORT_H_

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "services/client/content_digest.h"
#include "services/client/source_file.h"

namespace muster::client {

// The properties of a delivery.
struct ResultInfo {
  std::string run;
  std::string plugin;
  std::string node;
  int64_t attempt = 1;
  bool is_error = false;
  std::string media_type;
  std::string file_name;
};

// A result that is being delivered. Its digest is kept over all attempts. Not thread-safe.
struct OutgoingResult {
  OutgoingResult(ResultInfo info, std::unique_ptr<SourceFile> file)
      : info(std::move(info)), file(std::move(file)) {}

  ResultInfo info;
  const std::unique_ptr<SourceFile> file;
  ContentDigest digest;
};

// The committed result.
struct CommitReceipt {
  int64_t generation = 0;  // 0: not reported
  int64_t size = 0;
  std::string sha256;  // 32 bytes
};

// The outcome of one attempt.
struct TryOutcome {
  absl::StatusOr<CommitReceipt> receipt = absl::UnknownError("not tried");
  // The service accepted the number of the attempt.
  bool opened = false;
  // The service has more bytes than before, so the connection worked.
  bool progressed = false;
  // A relay has spooled the whole result; another attempt shows whether it was delivered.
  bool spooled = false;
};

// Not thread-safe: one attempt at a time.
class ResultTransport {
 public:
  virtual ~ResultTransport() = default;

  // Makes one attempt from the service's offset. Blocks; ends soon after `stop` with CANCELLED
  // (INTERRUPTED). Errors are those of ResultService for any transport; while a relay spools the
  // result, UNAVAILABLE (RESULT_SPOOLED).
  virtual TryOutcome Try(OutgoingResult& result, const std::stop_token& stop) = 0;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_RESULT_TRANSPORT_H_
