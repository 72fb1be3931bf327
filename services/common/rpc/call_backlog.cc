#include "services/common/rpc/call_backlog.h"

#include <algorithm>

namespace muster {

CallBacklog::~CallBacklog() { total_ -= reset_; }

void CallBacklog::Add() {
  MutexLock lock(mutex_);
  ++calls_;
}

void CallBacklog::Remove() {
  MutexLock lock(mutex_);
  --calls_;
  SetReset(reset_ - 1);
}

bool CallBacklog::IsExceeded(int begun, int reset, bool forwards) {
  MutexLock lock(mutex_);
  // Those that begin now exist only after their bytes were read.
  const int calls = calls_ + begun;
  SetReset(std::min(reset_ + reset, calls));
  return calls > kMaxCalls || (!forwards && reset_ > kMaxReset) ||
         (reset_ > kFewReset && total_ > kMaxResetInAll);
}

void CallBacklog::SetReset(int reset) {
  reset = std::max(reset, 0);
  total_ += reset - reset_;
  reset_ = reset;
}

}  // namespace muster
