// Checks the connection to the fleet before an agent's first work.
#ifndef MUSTER_SERVICES_AGENT_PREFLIGHT_PREFLIGHT_H_
#define MUSTER_SERVICES_AGENT_PREFLIGHT_PREFLIGHT_H_

#include <optional>
#include <stop_token>
#include <thread>

#include "absl/time/time.h"
#include "services/client/client.h"
#include "services/common/base/mutex.h"

namespace muster {

// Checks in turn the name, the connection, TLS, this machine's clock, and the right to deliver.
// Returns the first fault, with the address and the next step; nothing if there is none. One valid
// address is sufficient; otherwise returns the fault of the address that passed the most checks.
// Blocks for up to 10 s per check. `client` knows the fleet's clock if its heartbeats arrive.
std::optional<client::Fault> CheckConnection(const client::Config& config,
                                             const client::Client& client,
                                             const std::stop_token& stop);

// Repeats the checks until there is no fault. A fault is logged, and reported with the client's
// heartbeats while it lasts. It stops nothing: the work continues meanwhile. The checks block, so
// they have a thread. Thread-safe.
class Preflight {
 public:
  // `client`, of `config`, must outlive this object.
  Preflight(const client::Config& config, client::Client& client);
  ~Preflight();

  // Waits for the end of the first check, for at most `limit`, or until `stop`. Returns true if it
  // ended.
  bool AwaitFirst(absl::Duration limit, const std::stop_token& stop);

 private:
  void Run(const std::stop_token& stop);
  void Report(const std::optional<client::Fault>& fault) ABSL_LOCKS_EXCLUDED(mutex_);

  const client::Config config_;
  client::Client& client_;
  std::optional<client::Fault> last_;  // used by the thread
  Mutex mutex_;
  StoppableCondVar changed_;
  bool checked_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses the members above
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PREFLIGHT_PREFLIGHT_H_
