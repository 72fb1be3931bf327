// The checks before an agent's first work: is the way to the fleet free?
#ifndef MUSTER_SERVICES_AGENT_PREFLIGHT_PREFLIGHT_H_
#define MUSTER_SERVICES_AGENT_PREFLIGHT_PREFLIGHT_H_

#include <optional>
#include <stop_token>
#include <thread>

#include "absl/time/time.h"
#include "services/client/client.h"
#include "services/common/base/mutex.h"

namespace muster {

// Checks in turn: the name, the connection, TLS, this machine's clock, and whether we may deliver.
// The first that fails, with the address and what to do; nothing if the way is free. Of several
// addresses one has to be good; else it is the fault of the one that got furthest. Blocks for up to
// 10 s a step. `client` knows the fleet's clock if its heartbeats get through.
std::optional<client::Fault> CheckRoute(const client::Config& config, const client::Client& client,
                                        const std::stop_token& stop);

// Checks the way in a thread of its own until it is free: at once, then again and again. What
// stands in it is logged, and told with the client's heartbeats for as long as it does. It stops
// nothing: the work goes on as if nobody had looked. Thread-safe.
class Preflight {
 public:
  // `client`, of `config`, outlives this object.
  Preflight(const client::Config& config, client::Client& client);
  ~Preflight();

  // Waits for the end of the first check, for at most `limit`, or until `stop`. True if it ended.
  bool AwaitFirst(absl::Duration limit, const std::stop_token& stop);

 private:
  void Run(const std::stop_token& stop);
  void Found(const std::optional<client::Fault>& fault) ABSL_LOCKS_EXCLUDED(mutex_);

  const client::Config config_;
  client::Client& client_;
  std::optional<client::Fault> last_;  // of the thread
  Mutex mutex_;
  StoppableCondVar changed_;
  bool checked_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // the last: it uses the others
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_PREFLIGHT_PREFLIGHT_H_
