// Reports progress by StatusService.
#ifndef MUSTER_SERVICES_CLIENT_PROGRESS_REPORTER_H_
#define MUSTER_SERVICES_CLIENT_PROGRESS_REPORTER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "services/client/client.h"

namespace muster::client {

struct StatusChannels;

// Thread-safe.
class ProgressReporter {
 public:
  explicit ProgressReporter(std::shared_ptr<const StatusChannels> channels);

  // Tries each target once, in turn, until one accepts the report; at most 10 s each.
  absl::Status Report(const Config& config, const Progress& progress);

 private:
  const std::shared_ptr<const StatusChannels> channels_;
};

// Returns the report as legacy listeners accept it: a JSON object.
std::string ProgressJson(const Progress& progress);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_PROGRESS_REPORTER_H_
