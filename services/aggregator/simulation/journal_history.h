// A journal on the simulated disk, and what its writer knows of it.
#ifndef MUSTER_SERVICES_AGGREGATOR_SIMULATION_JOURNAL_HISTORY_H_
#define MUSTER_SERVICES_AGGREGATOR_SIMULATION_JOURNAL_HISTORY_H_

#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/simulated_disk.h"
#include "services/common/journal/journal.h"

namespace muster::testing {

class JournalHistory {
 public:
  // Opens or creates the journal, and compares it with the history: the first of the appended
  // records, in order, once, and none missing that was acknowledged.
  absl::Status Open(FileOps& disk, bool faulty);

  // Checks that the loss of power now would not lose the file of durable records.
  absl::Status CheckDurable(const SimulatedDisk& disk) const;

  // Appends or syncs.
  void Use(std::mt19937_64& chance);
  void Close() { journal_.reset(); }
  void LosePower() { kept_ = durable_; }

 private:
  std::unique_ptr<Journal> journal_;
  bool created_ = false;
  std::vector<std::string> appended_;
  size_t durable_ = 0;  // survive the loss of power
  size_t kept_ = 0;     // survive the crash that comes next or came last
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_SIMULATION_JOURNAL_HISTORY_H_
