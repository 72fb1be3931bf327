// Uploads the contents of files to the jobs service.
#ifndef MUSTER_CLI_RPC_CONTENT_CLIENT_H_
#define MUSTER_CLI_RPC_CONTENT_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/identity/context.h"

namespace muster::cli {

// A content, and the file on this machine that has it.
struct LocalContent {
  std::string sha256;  // 32 bytes
  int64_t size = 0;
  std::string source;
};

// A client of the jobs service with the identity of an operator. Every call has a deadline, and is
// repeated while the service is unavailable. Errors of the service are marked with FromService
// (exit_code.h). Not thread-safe.
class ContentClient {
 public:
  // The context names a jobs service.
  explicit ContentClient(const OperatorContext& context);
  ~ContentClient();

  // Returns those that the service does not have, each once. The service keeps the others for a
  // further day.
  absl::StatusOr<std::vector<LocalContent>> FindMissing(const std::vector<LocalContent>& contents);

  // Receives the number of bytes of one content that the service has.
  using Progress = std::function<void(int64_t bytes)>;

  // Sends the bytes that the service does not have, and returns once the content is stored. A
  // repeated call continues where this one ended. A usage error if the file has changed.
  absl::Status Upload(const LocalContent& content, const Progress& progress);

 private:
  struct Stub;

  const std::unique_ptr<Stub> stub_;
};

}  // namespace muster::cli

#endif  // MUSTER_CLI_RPC_CONTENT_CLIENT_H_
