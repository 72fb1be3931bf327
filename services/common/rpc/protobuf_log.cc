#include "services/common/rpc/protobuf_log.h"

#include <google/protobuf/stubs/logging.h>

#include <string>

#include "services/common/base/log.h"

namespace muster {

void RouteProtobufLog() {
  google::protobuf::SetLogHandler(
      [](google::protobuf::LogLevel, const char*, int, const std::string& message) {
        Log(LogLevel::kDebug, "protobuf", {{"text", message}});
      });
}

}  // namespace muster
