#include "services/common/rpc/channel_driver.h"

#include <atomic>
#include <utility>

#include "services/common/base/mutex.h"

namespace muster {
namespace {

struct DrivenChannel {
  std::shared_ptr<ChannelDriver> driver;
  std::shared_ptr<grpc::Channel> channel;  // destroyed first
};

struct Shared {
  Mutex mutex;
  std::weak_ptr<ChannelDriver> driver ABSL_GUARDED_BY(mutex);
};

std::atomic<bool> server_handles_events = false;

}  // namespace

std::shared_ptr<ChannelDriver> ChannelDriver::Get() {
  static auto* const shared = new Shared();
  MutexLock lock(shared->mutex);
  std::shared_ptr<ChannelDriver> driver = shared->driver.lock();
  if (driver == nullptr) {
    driver.reset(new ChannelDriver());
    shared->driver = driver;
  }
  return driver;
}

// The thread runs none of our callbacks, so it never drops the last reference to the driver.
ChannelDriver::ChannelDriver()
    : thread_([this] {
        void* tag = nullptr;
        bool ok = false;
        while (queue_.Next(&tag, &ok)) {
        }
      }) {}

ChannelDriver::~ChannelDriver() {
  queue_.Shutdown();
  thread_.join();
}

std::shared_ptr<grpc::Channel> KeepDriven(std::shared_ptr<grpc::Channel> channel) {
  if (server_handles_events) return channel;
  auto driven =
      std::make_shared<DrivenChannel>(DrivenChannel{ChannelDriver::Get(), std::move(channel)});
  grpc::Channel* const raw = driven->channel.get();
  return {std::move(driven), raw};
}

void LeaveEventsToServer() { server_handles_events = true; }

}  // namespace muster
