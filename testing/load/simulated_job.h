// What a simulated node prints for one command, and how far it has been told.
#ifndef MUSTER_TESTING_LOAD_SIMULATED_JOB_H_
#define MUSTER_TESTING_LOAD_SIMULATED_JOB_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"

namespace muster::load {

// Records are made anew from their sequence whenever they are sent, so that what is not
// acknowledged costs no memory: `started`, pieces of output of 32 KiB, `final`. The output is lines
// of 16 bytes, "<node's number> <line's number>\n" with seven digits each, so that whoever reads it
// can tell each byte. Not thread-safe.
class SimulatedJob {
 public:
  // `size`: bytes of output.
  SimulatedJob(std::string id, std::string node, int number, int64_t size);

  // Adds what may be sent now to a message of at most 256 KiB: at most 64 KiB of output are on
  // their way without an acknowledgement. What a node has begun it tells at once: `started` goes
  // alone. True if it added any.
  bool Take(v1::JobRecords* out);

  // The root has all up to this; true if that is everything.
  bool Acknowledge(int64_t sequence);

  // What was sent and not acknowledged may be lost.
  void Rewind() { sent_ = acknowledged_; }

 private:
  int64_t Last() const { return 2 + Pieces(); }
  int64_t Pieces() const;
  int64_t PiecesUpTo(int64_t sequence) const;
  void Make(int64_t sequence, v1::JobRecord* record) const;

  const std::string id_;
  const std::string node_;
  const int number_;
  const int64_t size_;
  const absl::Time began_;
  bool told_ = false;         // that it has begun
  int64_t acknowledged_ = 0;  // sequence, as the next
  int64_t sent_ = 0;
};

}  // namespace muster::load

#endif  // MUSTER_TESTING_LOAD_SIMULATED_JOB_H_
