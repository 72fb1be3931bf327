#include <grpc/support/log.h>

#include <csignal>
#include <string>

#include "cli/app.h"
#include "cli/output/console.h"
#include "services/common/base/exit_process.h"
#include "services/common/base/log.h"
#include "services/common/rpc/protobuf_log.h"
#include "services/common/rpc/proxy.h"

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a write to a closed pipe fails instead of ending the program
  // Each failed call has its own error: gRPC's messages are for the log of an agent.
  gpr_set_log_function([](gpr_log_func_args* args) {
    muster::Log(muster::LogLevel::kDebug, "grpc", {{"text", args->message}});
  });
  muster::RouteProtobufLog();
  const std::string proxy_fault = muster::UseOneProxy();
  muster::cli::Console console = muster::cli::SystemConsole();
  if (!proxy_fault.empty()) muster::cli::PrintMessage(console, "Warning: " + proxy_fault + ".");
  const int code = muster::cli::RunProgram(argc, argv, console);
  console.out.flush();
  muster::ExitProcess(code);
}
