#include "services/common/store/state_store.h"

#include <future>

namespace muster {

absl::StatusOr<CommandResult> StateStore::EnqueueAndWait(Command command) {
  std::promise<absl::StatusOr<CommandResult>> promise;
  auto future = promise.get_future();
  Enqueue(std::move(command), [&promise](absl::StatusOr<CommandResult> result) {
    promise.set_value(std::move(result));
  });
  return future.get();
}

}  // namespace muster
