#include "services/status/board/new_progress.h"

namespace muster {

void NewProgress::Add(Pair& pair) {
  if (!std::exchange(pair.work->unsaved, true)) pairs_.push_back(&pair);
}

std::vector<std::pair<v1::ResultKey, v1::Progress>> NewProgress::Drain(const std::string& run) {
  std::vector<std::pair<v1::ResultKey, v1::Progress>> drained;
  for (Pair* const pair : std::exchange(pairs_, {})) {
    pair->work->unsaved = false;
    if (pair->pending()) drained.emplace_back(KeyOf(run, *pair), *pair->work->progress);
  }
  return drained;
}

}  // namespace muster
