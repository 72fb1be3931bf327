// Progress over StatusService.
#ifndef MUSTER_SERVICES_CLIENT_PROGRESS_REPORTER_H_
#define MUSTER_SERVICES_CLIENT_PROGRESS_REPORTER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/client/client.h"
#include "services/client/sender_identity.h"

namespace muster::client {

// Thread-safe.
class ProgressReporter {
 public:
  // `targets`: at least one. The servers must be a status service or a relay of the sender's fleet.
  ProgressReporter(const std::vector<std::string>& targets, const std::string& fleet_ca_pem,
                   const std::string& client_key_pem, const SenderIdentity& identity);
  ~ProgressReporter();

  // One try at each target in turn until one takes it; at most 10 s each.
  absl::Status Report(const Config& config, const Progress& progress);

 private:
  struct Stubs;
  std::unique_ptr<Stubs> stubs_;
};

// The report as old listeners take it: a JSON object.
std::string ProgressJson(const Progress& progress);

}  // namespace muster::client

#endif  // MUSTER_SERVICES_CLIENT_PROGRESS_REPORTER_H_
