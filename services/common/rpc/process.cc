#include "services/common/rpc/process.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>

#include <cstdlib>

#include "services/common/base/log.h"

namespace muster {

void RequireTls13() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): first call in main, before any thread.
  setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", 1);
}

void RouteGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args* args) {
    const LogLevel level =
        args->severity == GPR_LOG_SEVERITY_ERROR ? LogLevel::kInfo : LogLevel::kDebug;
    Log(level, "grpc", {{"said", args->message}});
  });
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
