#include "services/common/rpc/call_end.h"

#include <thread>

#include "absl/synchronization/notification.h"
#include "services/common/errors/rpc.h"
#include "services/common/rpc/status.h"

namespace muster {

absl::Status AwaitCallEnd(grpc::ClientContext& context, absl::FunctionRef<grpc::Status()> finish,
                          absl::Duration limit) {
  absl::Notification ended;
  bool cancelled = false;
  std::jthread canceller([&] {
    if (ended.WaitForNotificationWithTimeout(limit)) return;
    cancelled = true;
    context.TryCancel();
  });
  const absl::Status status = FromGrpc(finish());
  ended.Notify();
  canceller.join();
  return cancelled && absl::IsCancelled(status) ? errors::UnreadableAnswer() : status;
}

}  // namespace muster
