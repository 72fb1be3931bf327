#include "services/common/rpc/process.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/protobuf_log.h"

namespace muster {
namespace {

// Never destroyed: gRPC's threads may log to the end.
struct HandshakeObservers {
  static HandshakeObservers& Get() {
    static auto* const observers = new HandshakeObservers;
    return *observers;
  }

  void Notify(std::string_view reason) {
    MutexLock lock(mutex);
    for (const auto& [id, observer] : all) observer(reason);
  }

  Mutex mutex;
  uint64_t next ABSL_GUARDED_BY(mutex) = 0;
  std::map<uint64_t, HandshakeObserver> all ABSL_GUARDED_BY(mutex);
};

// An address that cannot be bound has its own error (LISTEN_FAILED), and the start ends.
bool IsReportedElsewhere(std::string_view line) {
  return line.starts_with("UNKNOWN:No address added") ||
         line.starts_with("CompletionQueue shutdown being shutdown");
}

}  // namespace

void RequireTls13() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): first call in main, before any thread.
  setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", 1);
}

void RouteGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args* args) {
    const bool relevant =
        args->severity == GPR_LOG_SEVERITY_ERROR && !IsReportedElsewhere(args->message);
    Log(relevant ? LogLevel::kInfo : LogLevel::kDebug, "grpc", {{"text", args->message}});
    const std::string_view failure = HandshakeFailure(args->message);
    if (!failure.empty()) HandshakeObservers::Get().Notify(failure);
  });
  RouteProtobufLog();
}

std::string_view HandshakeFailure(std::string_view line) {
  if (!line.starts_with("Handshake failed with fatal error")) return "";
  // OpenSSL's texts.
  static constexpr std::pair<std::string_view, std::string_view> kReasons[] = {
      {"certificate verify failed", "bad_certificate"},
      {"peer did not return a certificate", "no_certificate"},
      {"no shared cipher", "below_tls13"},
      {"unsupported protocol", "below_tls13"},
      {"http request", "plaintext"},
      {"wrong version number", "plaintext"},
      {" alert ", "refused_by_peer"},
  };
  for (const auto& [text, reason] : kReasons) {
    if (line.find(text) != std::string_view::npos) return reason;
  }
  return "other";
}

std::shared_ptr<void> ObserveFailedHandshakes(HandshakeObserver observer) {
  auto& observers = HandshakeObservers::Get();
  MutexLock lock(observers.mutex);
  const uint64_t id = observers.next++;
  observers.all.emplace(id, std::move(observer));
  return {nullptr, [id](void*) {
            auto& registered = HandshakeObservers::Get();
            MutexLock guard(registered.mutex);
            registered.all.erase(id);
          }};
}

void EnableInspectionPlugins() {
  static const bool once = [] {
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::channelz::experimental::InitChannelzService();
    return true;
  }();
  (void)once;
}

}  // namespace muster
