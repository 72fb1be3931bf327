// The status listeners that runs have of their own: what is brought for them, checked and kept.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUNS_STATUS_LISTENERS_H_
#define MUSTER_SERVICES_AGGREGATOR_RUNS_STATUS_LISTENERS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/aggregator/runs/authorities.h"
#include "services/common/base/clock.h"
#include "services/common/identity/secret.h"
#include "services/common/store/state_store.h"

namespace muster {

// What the gateway needs to serve one.
struct ServedStatusListener {
  std::string client_ca_pem;
  std::string certificate_pem;  // empty, with the key: the fleet's own
  Secret key_pem;
};

// Thread-safe. Its methods may wait for the disk.
class StatusListeners {
 public:
  // `hosts`: the advertised ones.
  StatusListeners(StateStore& store, Authorities& authorities, const Clock& clock,
                  std::vector<std::string> hosts)
      : store_(store), authorities_(authorities), clock_(clock), hosts_(std::move(hosts)) {}

  // The errors of RunService.SetStatusListener. The key is stored encrypted, and only so. The
  // addresses begin with the advertised hosts that the certificate names, if it names one.
  absl::Status Set(const std::string& run, std::string_view client_ca_pem,
                   std::string_view certificate_pem, std::string_view key_pem,
                   const std::string& actor);

  // The errors of ListenerService.GetStatusListener.
  absl::StatusOr<ServedStatusListener> Get(const std::string& run);

  // What a client of the run's own status listener has to trust; empty if that is the fleet's root.
  absl::StatusOr<std::string> ServerCaPem(const std::string& run);

  // The errors of ListenerService.ReportStatusListener.
  absl::Status Report(const std::string& run, const ListenerRecord& listener);

 private:
  absl::StatusOr<StatusListenerRecord> Read(const std::string& run);

  StateStore& store_;
  Authorities& authorities_;
  const Clock& clock_;
  const std::vector<std::string> hosts_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUNS_STATUS_LISTENERS_H_
