#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <csignal>
#include <string>

#include "cli/app.h"
#include "cli/output/console.h"
#include "services/common/base/log.h"
#include "services/common/rpc/proxy.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a write to a closed pipe fails instead of ending the program
  // Each failed call has its own error: gRPC's messages are for the log of an agent.
  gpr_set_log_function([](gpr_log_func_args* args) {
    muster::Log(muster::LogLevel::kDebug, "grpc", {{"text", args->message}});
  });
  // It has a line for each text of a peer that is not UTF-8.
  google::protobuf::SetLogHandler(
      [](google::protobuf::LogLevel, const char*, int, const std::string& message) {
        muster::Log(muster::LogLevel::kDebug, "protobuf", {{"text", message}});
      });
  const std::string proxy_fault = muster::UseOneProxy();
  muster::cli::Console console = muster::cli::SystemConsole();
  if (!proxy_fault.empty()) muster::cli::PrintMessage(console, "Warning: " + proxy_fault + ".");
  return muster::cli::RunProgram(argc, argv, console);
}
