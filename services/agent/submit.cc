#include "services/agent/submit.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "services/agent/agent_config.h"
#include "services/agent/outcome.h"
#include "services/agent/stop_on_signal.h"
#include "services/client/client_status.h"

namespace muster {
namespace {

std::ptrdiff_t ReadStandardInput(char* buffer, size_t size) {
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, size);
    if (got >= 0 || errno != EINTR) return got;
  }
}

client::Delivery Submit(const SubmitOptions& options, const std::stop_token& stop) {
  const auto config = LoadAgentConfig(options.config_path, std::getenv);
  if (!config.ok()) return {client::ToClientStatus(config.status()), {}};
  client::Status ready;
  const auto client = client::Client::Create(config->client, &ready);
  if (!client) return {ready, {}};
  const client::SubmitOptions said{options.media_type, options.file_name};
  if (options.file.empty()) return client->SubmitError(options.error_text, stop);
  if (options.file == "-") return client->SubmitStream(ReadStandardInput, said, stop);
  return client->SubmitFile(options.file, said, stop);
}

}  // namespace

int RunSubmit(const SubmitOptions& options) {
  const StopOnSignal signals;
  return PrintOutcome(Submit(options, signals.token()), ConfigSubject(options.config_path));
}

}  // namespace muster
