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
  explicit ProgressReporter(const StatusChannels& channels);
  ~ProgressReporter();

  // Tries each target once, in turn, until one accepts the report; at most 10 s each.
  absl::Status Report(const Config& config, const Progress& progress);

 private:
  struct Stubs;
  std::unique_ptr<Stubs> stubs_;
};

// Returns the report as legacy listeners accept it: a JSON object.
std::string ProgressJson(const Progress& progress);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_PROGRESS_REPORTER_H_
