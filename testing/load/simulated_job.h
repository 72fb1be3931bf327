// The output of a simulated node for one command, and the acknowledged position in it.
#ifndef MUSTER_TESTING_LOAD_SIMULATED_JOB_H_
#define MUSTER_TESTING_LOAD_SIMULATED_JOB_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/jobs/records_signature.h"

namespace muster::load {

// Records are recomputed from their sequence for every transmission, so that unacknowledged data
// needs no memory: `started`, output chunks of 32 KiB, `final`. The output consists of lines of 16
// bytes, "<node's number> <line's number>\n" with seven digits each, so that a reader can verify
// each byte. Not thread-safe.
class SimulatedJob {
 public:
  // `size` is the bytes of output; `sign` signs the final record.
  SimulatedJob(std::string id, std::string node, int number, int64_t size, FinalSigner sign);

  // Adds records that may be sent now to a message of at most 256 KiB: at most 64 KiB of output are
  // unacknowledged. `started` is sent alone and immediately. Returns true if it added any.
  bool AddRecords(v1::JobRecords* out);

  // The root relay has all records up to this one; true if that is everything.
  bool Acknowledge(int64_t sequence);

  // Unacknowledged records may be lost.
  void Rewind() { sent_ = acknowledged_; }

 private:
  int64_t Last() const { return 2 + Pieces(); }
  int64_t Pieces() const;
  int64_t PiecesUpTo(int64_t sequence) const;
  void Make(int64_t sequence, v1::JobRecord* record) const;
  void Sign(v1::JobRecord* final) const;

  const std::string id_;
  const std::string node_;
  const int number_;
  const int64_t size_;
  const FinalSigner sign_;
  const absl::Time start_;
  bool started_ = false;      // the record `started` was sent
  int64_t acknowledged_ = 0;  // sequence, as the next
  int64_t sent_ = 0;
};

}  // namespace muster::load

#endif  // MUSTER_TESTING_LOAD_SIMULATED_JOB_H_
