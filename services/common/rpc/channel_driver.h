// A thread that lets the channels of this process make progress between calls.
#ifndef MUSTER_SERVICES_COMMON_RPC_CHANNEL_DRIVER_H_
#define MUSTER_SERVICES_COMMON_RPC_CHANNEL_DRIVER_H_

#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>

#include <memory>
#include <thread>

namespace muster {

// gRPC 1.51 handles the events of connections on threads that wait for a call. In a process whose
// calls are all synchronous no such thread exists between two calls: gRPC then looks for events
// only every five seconds. A handshake that begins while the process waits takes several such
// steps, the server ends it after 10 s, and gRPC's own back-off grows meanwhile. This thread waits
// for events all the time. All connections of a process are in one epoll set, so one thread serves
// all channels. Thread-safe.
class ChannelDriver {
 public:
  // Returns the driver of this process. The first reference starts its thread, and the last one
  // stops it.
  static std::shared_ptr<ChannelDriver> Get();

  ChannelDriver(const ChannelDriver&) = delete;
  ChannelDriver& operator=(const ChannelDriver&) = delete;
  ~ChannelDriver();

 private:
  ChannelDriver();

  grpc::CompletionQueue queue_;  // always empty
  std::thread thread_;
};

// Returns the same channel, which also holds a reference to the driver, unless LeaveEventsToServer
// was called.
std::shared_ptr<grpc::Channel> KeepDriven(std::shared_ptr<grpc::Channel> channel);

// To be called before the first channel of a process that runs a gRPC server: the threads of the
// server handle the events of all connections. A driver would read messages in their place and hand
// them over, which costs a switch of threads for each.
void LeaveEventsToServer();

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_RPC_CHANNEL_DRIVER_H_
