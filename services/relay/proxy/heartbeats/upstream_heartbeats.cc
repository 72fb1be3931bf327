#include "services/relay/proxy/heartbeats/upstream_heartbeats.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <atomic>
#include <functional>
#include <utility>

#include "muster/v1/heartbeats.grpc.pb.h"
#include "services/common/base/backoff.h"
#include "services/common/base/log.h"
#include "services/common/rpc/status.h"

namespace muster {
namespace {

// News goes up this often: four times a second, as a sender of its own may.
constexpr absl::Duration kPace = absl::Milliseconds(250);

constexpr absl::Duration kNoWay = absl::Seconds(1);

}  // namespace

UpstreamHeartbeats::UpstreamHeartbeats(HeartbeatHub& hub, Upstream& upstream)
    : hub_(hub), upstream_(upstream), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

UpstreamHeartbeats::~UpstreamHeartbeats() { thread_.request_stop(); }

void UpstreamHeartbeats::Run(const std::stop_token& stop) {
  Backoff backoff;
  while (!stop.stop_requested()) {
    const auto channel = upstream_.Status();
    if (channel == nullptr) {
      WaitFor(kNoWay, stop);
      continue;
    }
    const absl::Time begun = absl::Now();
    Hold(channel, stop);
    if (absl::Now() - begun > absl::Minutes(1)) backoff.Reset();
    WaitFor(backoff.Next(std::nullopt), stop);
  }
}

void UpstreamHeartbeats::Hold(const std::shared_ptr<grpc::Channel>& channel,
                              const std::stop_token& stop) {
  const auto stub = v1::HeartbeatService::NewStub(channel);
  grpc::ClientContext context;
  const std::stop_callback<std::function<void()>> cancel(stop, [&] { context.TryCancel(); });
  const auto stream = stub->RelayHeartbeats(&context);
  std::atomic<bool> over = false;
  std::jthread reader([&] {
    v1::RelayHeartbeatsResponse response;
    while (stream->Read(&response)) hub_.HandleResponse(response);
    over = true;
  });
  hub_.Restart();
  while (!over && !stop.stop_requested() && upstream_.Status() == channel) {
    if (auto request = hub_.Next(); request && !stream->Write(*request)) break;
    WaitFor(kPace, stop);
  }
  // Another way up takes over; what is left of this one is not waited for.
  if (upstream_.Status() != channel) context.TryCancel();
  stream->WritesDone();
  if (stop.stop_requested()) context.TryCancel();
  reader.join();
  const absl::Status status = FromGrpc(stream->Finish());
  if (!status.ok() && !stop.stop_requested()) {
    Log(LogLevel::kInfo, "the stream of heartbeats upward has ended", {{"error", status}});
  }
}

}  // namespace muster
