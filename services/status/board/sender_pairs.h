// The pairs that each sender of heartbeats works on.
#ifndef MUSTER_SERVICES_STATUS_BOARD_SENDER_PAIRS_H_
#define MUSTER_SERVICES_STATUS_BOARD_SENDER_PAIRS_H_

#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "muster/v1/types.pb.h"
#include "services/common/base/mutex.h"
#include "services/status/heartbeats/sender.h"

namespace muster {

// Thread-safe.
class SenderPairs {
 public:
  void Add(const v1::ResultKey& key, const std::shared_ptr<const Sender>& sender);

  std::vector<v1::ResultKey> Of(const Sender& sender) const;
  // Returns the senders with a pair of the run.
  std::vector<std::shared_ptr<const Sender>> OfRun(const std::string& run) const;

  // Forgets the pairs of all other runs, and the senders without another pair.
  void KeepOnly(const std::set<std::string>& runs);

 private:
  struct Entry {
    std::shared_ptr<const Sender> sender;
    std::vector<v1::ResultKey> pairs;
  };

  mutable Mutex mutex_;
  std::unordered_map<const Sender*, Entry> senders_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_SENDER_PAIRS_H_
