// The separate status listeners of runs: validates and stores the provided certificates.
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

// The parameters with which the gateway serves one.
struct ServedStatusListener {
  std::string client_ca_pem;
  std::string certificate_pem;  // empty, like the key: the fleet's certificate
  Secret key_pem;
};

// Thread-safe. Its methods may wait for the disk.
class StatusListeners {
 public:
  // `hosts`: the advertised hosts.
  StatusListeners(StateStore& store, Authorities& authorities, const Clock& clock,
                  std::vector<std::string> hosts)
      : store_(store), authorities_(authorities), clock_(clock), hosts_(std::move(hosts)) {}

  // Returns whether Set would accept these files. INVALID_STATUS_CERTIFICATE.
  absl::Status Check(std::string_view client_ca_pem, std::string_view certificate_pem,
                     std::string_view key_pem) const;

  // Fails as RunService.SetStatusListener does. The key is stored only in encrypted form. Addresses
  // use the advertised host that the certificate names, if there is one.
  absl::Status Set(const std::string& run, std::string_view client_ca_pem,
                   std::string_view certificate_pem, std::string_view key_pem, const Actor& actor);

  // Fails as ListenerService.GetStatusListener does.
  absl::StatusOr<ServedStatusListener> Get(const std::string& run);

  // Returns the CA that a client of the run's separate status listener must trust; empty for the
  // fleet's root.
  absl::StatusOr<std::string> ServerCaPem(const std::string& run);

  // Fails as ListenerService.ReportStatusListener does.
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
