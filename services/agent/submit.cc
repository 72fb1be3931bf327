#include "services/agent/submit.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "services/agent/agent_config.h"
#include "services/agent/outcome.h"
#include "services/agent/preflight/preflight.h"
#include "services/agent/stop_on_signal.h"
#include "services/client/client_status.h"
#include "services/client/source_file.h"
#include "services/common/rpc/connection_error.h"

namespace muster {
namespace {

std::ptrdiff_t ReadStandardInput(char* buffer, size_t size) {
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, size);
    if (got >= 0 || errno != EINTR) return got;
  }
}

// Checks the file before the configuration, so that an error names the file.
absl::Status CheckFile(const std::string& file) {
  if (file.empty() || file == "-") return absl::OkStatus();
  return client::SourceFile::Open(file).status();
}

// Prints on stderr why the result is not delivered yet: each reason once, until another one
// follows.
class WaitPrinter {
 public:
  WaitPrinter(const client::Config& config, const client::Client& client, std::stop_token stop)
      : config_(config), client_(client), stop_(std::move(stop)) {}

  void Print(const client::Status& why) {
    if (printed_ == why.reason) return;
    if (!printed_) {
      std::cerr << "The result is not delivered yet. The delivery is retried until the run accepts "
                   "no more results.\n";
    }
    printed_ = why.reason;
    // The checks find the cause of a failed connection.
    if (IsConnectionError(why.reason)) {
      if (const auto fault = CheckConnection(config_, client_, stop_)) {
        PrintWait(fault->message, "", fault->address, fault->next_step);
        return;
      }
    }
    PrintWait(why.message, why.reason, "", why.next_step);
  }

 private:
  const client::Config& config_;
  const client::Client& client_;
  const std::stop_token stop_;
  std::optional<std::string> printed_;  // a reason
};

client::Delivery Submit(const SubmitOptions& options, const std::stop_token& stop) {
  const auto config = LoadAgentConfig(options.config_path, std::getenv);
  if (!config.ok()) return {client::ToClientStatus(config.status()), {}};
  client::Status ready;
  const auto client = client::Client::Create(config->client, &ready);
  if (!client) return {ready, {}};
  WaitPrinter waits(config->client, *client, stop);
  client->WatchWaits([&waits](const client::Status& why) { waits.Print(why); });
  const client::SubmitOptions said{options.media_type, options.file_name};
  if (options.file.empty()) return client->SubmitError(options.error_text, stop);
  if (options.file == "-") return client->SubmitStream(ReadStandardInput, said, stop);
  return client->SubmitFile(options.file, said, stop);
}

}  // namespace

int RunSubmit(const SubmitOptions& options) {
  const StopOnSignal signals;
  if (const absl::Status readable = CheckFile(options.file); !readable.ok()) {
    client::Status status = client::ToClientStatus(readable);
    status.code = client::Code::kBadConfig;
    return PrintOutcome({status, {}}, "file " + options.file);
  }
  return PrintOutcome(Submit(options, signals.token()),
                      ConfigSubject(options.config_path, std::getenv));
}

}  // namespace muster
