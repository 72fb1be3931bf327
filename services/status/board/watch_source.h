// The messages to one watcher of a run.
#ifndef MUSTER_SERVICES_STATUS_BOARD_WATCH_SOURCE_H_
#define MUSTER_SERVICES_STATUS_BOARD_WATCH_SOURCE_H_

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/v1/status.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/stream.h"
#include "services/status/board/board.h"

namespace muster {

// A round sends each pair that changed since the round before once, in messages of at most 2,000
// pairs. At most four rounds begin in a second. Only the position of a watcher is stored, so a slow
// reader costs nothing and receives the newest state.
//
// Not thread-safe (a stream asks one thing at a time).
class WatchSource : public StreamSource<std::string> {
 public:
  // INVALID_CURSOR for one that no status service has given; RUN_NOT_FOUND; STATUS_NOT_READY. Next
  // returns these if the run has ended and its pairs have to be read first. `caller`: HolderOf.
  static absl::StatusOr<std::unique_ptr<WatchSource>> Make(Board& board, WatchHub& hub,
                                                           const Clock& clock,
                                                           const v1::WatchStatusRequest& request,
                                                           std::string_view caller,
                                                           std::function<void()> wake);

  // `bytes` become those of a v1::WatchStatusResponse.
  absl::StatusOr<Pull> Next(std::string* bytes) override;

 private:
  // The run, once it has its pairs.
  struct Pending {
    Mutex mutex;
    bool waiting ABSL_GUARDED_BY(mutex) = false;  // for `run`: the stream has to be woken
    std::optional<absl::StatusOr<std::shared_ptr<RunBoard>>> run ABSL_GUARDED_BY(mutex);
  };

  WatchSource(Board& board, WatchHub& hub, const Clock& clock,
              const v1::WatchStatusRequest& request, std::function<void()> wake)
      : board_(board),
        hub_(hub),
        clock_(clock),
        wake_(std::move(wake)),
        request_(request),
        with_pairs_(!request.omit_pairs()) {}

  // Begins if the run has its pairs; otherwise run_ remains null.
  absl::Status TryBegin();
  absl::Status Begin();
  // Returns whether there is a message to send, and it may be sent now.
  Pull BeginRound();
  void Fill(std::string* bytes);
  std::string Cursor(uint64_t version) const;

  Board& board_;
  WatchHub& hub_;
  const Clock& clock_;
  const std::function<void()> wake_;
  const v1::WatchStatusRequest request_;
  const bool with_pairs_;
  const std::shared_ptr<Pending> pending_ = std::make_shared<Pending>();
  std::shared_ptr<RunBoard> run_;
  WatchHub::Handle watch_;

  bool in_round_ = false;
  bool in_snapshot_ = false;
  bool sent_any_ = false;
  bool summary_due_ = false;  // with the next message
  WatchPosition sent_;
  WatchPosition round_;        // the end of this round
  absl::Duration summary_at_;  // of the last summary; monotonic
  // When the newest rounds began; monotonic. The oldest of them has to be a second ago.
  std::array<absl::Duration, 4> rounds_;
  size_t next_round_ = 0;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_STATUS_BOARD_WATCH_SOURCE_H_
