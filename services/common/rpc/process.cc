#include "services/common/rpc/process.h"

#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>

#include <cstdlib>

namespace muster {

void RequireTls13() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): first call in main, before any thread.
  setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", 1);
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
