// SIGTERM and SIGINT as a stop token.
#ifndef MUSTER_SERVICES_AGENT_STOP_ON_SIGNAL_H_
#define MUSTER_SERVICES_AGENT_STOP_ON_SIGNAL_H_

#include <stop_token>
#include <thread>

#include "services/common/base/process_setup.h"

namespace muster {

// A process creates at most one, before other threads start. A second signal ends the process.
class StopOnSignal {
 public:
  StopOnSignal()
      : waiter_([this] {
          if (signals_.Wait() != 0) stop_.request_stop();
        }) {}
  ~StopOnSignal() { signals_.RequestStop(); }

  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  SignalWaiter signals_;
  std::jthread waiter_;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGENT_STOP_ON_SIGNAL_H_
