// One way to deliver a result, one try at a time.
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

// What a delivery says of itself.
struct ResultInfo {
  std::string run;
  std::string plugin;
  std::string node;
  int64_t attempt = 1;
  bool is_error = false;
  std::string media_type;
  std::string file_name;
};

// One result on its way. What was digested stays so over all tries. Not thread-safe.
struct OutgoingResult {
  OutgoingResult(ResultInfo info, std::unique_ptr<SourceFile> file)
      : info(std::move(info)), file(std::move(file)) {}

  ResultInfo info;
  const std::unique_ptr<SourceFile> file;
  ContentDigest digest;
};

// What the service committed.
struct CommitReceipt {
  int64_t generation = 0;  // 0: not said
  int64_t size = 0;
  std::string sha256;  // 32 bytes
};

// How one try went.
struct TryOutcome {
  absl::StatusOr<CommitReceipt> receipt = absl::UnknownError("not tried");
  // The service took the attempt for a current one.
  bool opened = false;
  // The service has more than before: the connection was good.
  bool progressed = false;
  // A relay holds all of it, and delivers it when it can: another try tells whether it has.
  bool spooled = false;
};

// Not thread-safe: one try at a time.
class ResultTransport {
 public:
  virtual ~ResultTransport() = default;

  // Tries once, from wherever the service stands. Blocks; ends soon after `stop` with CANCELLED
  // (INTERRUPTED). Errors are those of ResultService, whatever the transport; while a relay holds
  // the result, UNAVAILABLE (RESULT_SPOOLED).
  virtual TryOutcome Try(OutgoingResult& result, const std::stop_token& stop) = 0;
};

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_RESULT_TRANSPORT_H_
