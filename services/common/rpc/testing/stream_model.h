// The common part of the models of streams (server_stream_model.h, client_stream_model.h).
#ifndef MUSTER_SERVICES_COMMON_RPC_TESTING_STREAM_MODEL_H_
#define MUSTER_SERVICES_COMMON_RPC_TESTING_STREAM_MODEL_H_

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "services/common/base/executor.h"
#include "services/common/rpc/stream_core.h"

namespace muster::testing {

struct NumberedMessage : OutMessage {
  int number = 0;
};

// The events of a stream; outlives it.
struct StreamTrace {
  // Runs the oldest task of the executor.
  void RunTask() {
    Executor::Task task = std::move(tasks.front());
    tasks.pop_front();
    task();
  }

  bool read_out = false;
  bool write_out = false;
  bool done = false;
  bool muted = false;  // this side has ended it
  int in_callback = 0;
  int messages = 0;
  int writables = 0;
  int ends = 0;
  absl::Status end;
  EndedBy by = EndedBy::kPeer;
  int next_number = 0;
  std::vector<int> started;  // numbers of the messages that were handed to the call
  std::deque<Executor::Task> tasks;
};

// Exists during a callback. Checks that nothing runs beside it, and that no lock is held.
class InCallback {
 public:
  InCallback(const StreamCore& stream, StreamTrace& trace) : trace_(trace) {
    EXPECT_EQ(trace_.in_callback++, 0);
    EXPECT_EQ(trace_.ends, 0);
    stream.ended();
  }
  ~InCallback() { --trace_.in_callback; }

  // The callback is CallEnded.
  void NoteEnd(const absl::Status& status, EndedBy by) {
    EXPECT_TRUE(trace_.done);
    trace_.end = status;
    trace_.by = by;
    ++trace_.ends;
  }

 private:
  StreamTrace& trace_;
};

// Chooses one of the things that may happen now and does it. The last alternative stands for one of
// `ends`.
template <typename Run, typename Choices>
void DoOne(Run& run, const std::vector<void (Run::*)()>& possible,
           const std::vector<void (Run::*)()>& ends, Choices& choices) {
  const size_t chosen = choices.Choose(possible.size() + 1);
  (run.*(chosen < possible.size() ? possible[chosen] : ends[choices.Choose(ends.size())]))();
}

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_COMMON_RPC_TESTING_STREAM_MODEL_H_
