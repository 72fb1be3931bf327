// The relays that forward heartbeats, and which of them are disconnected or silent.
#ifndef MUSTER_SERVICES_STATUS_HEARTBEATS_RELAY_TABLE_H_
#define MUSTER_SERVICES_STATUS_HEARTBEATS_RELAY_TABLE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "services/common/base/mutex.h"
#include "services/status/heartbeats/sender.h"

namespace muster {

// Times are monotonic. Thread-safe.
class RelayTable {
 public:
  struct Options {
    // For so long a disconnected or silent relay explains the silence of its senders. After an
    // absence it has to be connected for as long to explain as much again.
    absl::Duration doubt_limit;
    // For so long after its return the service waits for the senders that it had before.
    absl::Duration return_grace;
  };

  explicit RelayTable(const Options& options) : options_(options) {}

  // Returns the relay, which need not be connected. The result lives as long as this table.
  // TOO_MANY_SENDERS.
  absl::StatusOr<RelayState*> Find(const std::string& name, absl::Duration now);

  // A stream of the relay was opened: the relay is connected. TOO_MANY_SENDERS.
  absl::StatusOr<RelayState*> Open(const std::string& name, absl::Duration now);

  // Notes the certificate of the relay's newest stream (CertificateSubject).
  void SetCertificate(const RelayState& relay, const std::string& certificate);
  // Returns it; empty before the first stream since the start.
  std::string CertificateOf(const RelayState& relay) const;

  // The relay has sent a message, and is asked for the next ones by `interval`.
  void HandleMessage(RelayState* relay, absl::Duration now, absl::Duration interval);

  // A stream of the relay has ended. After the last one the relay is disconnected.
  void Close(RelayState* relay, absl::Duration now);

  // Returns whether the relay explains the silence of a sender since `last_seen`.
  bool ExplainsSilence(const RelayState& relay, absl::Duration last_seen, absl::Duration now) const;

  // Returns the disconnected and silent relays that explain the silence of their senders, by name.
  std::vector<const RelayState*> Lost(absl::Duration now) const;

 private:
  absl::StatusOr<RelayState*> FindOrAdd(const std::string& name, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Turn(RelayState& relay, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  // By name. Never erased, since senders refer to them.
  std::map<std::string, std::unique_ptr<RelayState>> relays_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> certificates_ ABSL_GUARDED_BY(mutex_);  // by name
};

// "relay r1 is not connected (3m10s): the state of its nodes is unknown", or
// "relay r1 is connected but silent (20s): ...".
std::string WhyUnknown(const RelayState& relay, absl::Duration now);

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_HEARTBEATS_RELAY_TABLE_H_
