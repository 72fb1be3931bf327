#include "services/aggregator/runs/status_listeners.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/errors.h"
#include "services/common/identity/brought_certificate.h"

namespace muster {

absl::Status StatusListeners::Set(const std::string& run, std::string_view client_ca_pem,
                                  std::string_view certificate_pem, std::string_view key_pem,
                                  const std::string& actor) {
  const absl::Time now = clock_.Now();
  SetStatusListener command;
  command.run = run;
  command.hosts = hosts_;
  command.actor = actor;
  command.at = absl::ToUnixMicros(now);
  const bool brings_server = !certificate_pem.empty() || !key_pem.empty();
  if (!client_ca_pem.empty() || !brings_server) {
    auto authorities = ReadBroughtAuthorities(client_ca_pem, now);
    if (!authorities.ok()) return authorities.status();
    command.listener.client_ca_pem = *std::move(authorities);
  }
  if (brings_server) {
    auto server = ReadBroughtServer(certificate_pem, key_pem, now);
    if (!server.ok()) return server.status();
    std::ranges::stable_partition(
        command.hosts, [&](const std::string& host) { return ServesHost(*server, host); });
    auto wrapped = authorities_.WrapStatusKey(server->key_pem, run);
    if (!wrapped.ok()) return wrapped.status();
    command.listener.certificate_pem = std::move(server->chain_pem);
    command.listener.wrapped_key = *std::move(wrapped);
  }
  const auto outcome = store_.ApplyAndWait(std::move(command));
  if (!outcome.ok()) return outcome.status();
  switch (outcome->verdict) {
    case SetStatusListener::Verdict::kSet:
      Log(LogLevel::kInfo, "the run has a status listener of its own", {{"run", run}});
      return absl::OkStatus();
    case SetStatusListener::Verdict::kRunNotFound:
      return errors::RunNotFound(run);
    case SetStatusListener::Verdict::kRunEnded:
      return errors::RunEnded(run);
    case SetStatusListener::Verdict::kExists:
      break;
  }
  return errors::StatusListenerExists(run);
}

absl::StatusOr<StatusListenerRecord> StatusListeners::Read(const std::string& run) {
  auto record = store_.GetStatusListener(run);
  if (!record.ok()) return record.status();
  if (*record) return **std::move(record);
  const auto view = store_.GetRun(run);
  if (!view.ok()) return view.status();
  if (!*view) return errors::RunNotFound(run);
  return (*view)->run.status_listener ? errors::RunEnded(run) : errors::NoStatusListener(run);
}

absl::StatusOr<ServedStatusListener> StatusListeners::Get(const std::string& run) {
  auto record = Read(run);
  if (!record.ok()) return record.status();
  ServedStatusListener served;
  served.client_ca_pem = std::move(record->client_ca_pem);
  served.certificate_pem = std::move(record->certificate_pem);
  if (record->wrapped_key.empty()) return served;
  auto key = authorities_.UnwrapStatusKey(record->wrapped_key, run);
  if (!key.ok()) return key.status();
  served.key_pem = *std::move(key);
  return served;
}

absl::StatusOr<std::string> StatusListeners::ServerCaPem(const std::string& run) {
  auto record = Read(run);
  if (!record.ok()) return record.status();
  return std::move(record->certificate_pem);
}

absl::Status StatusListeners::Report(const std::string& run, const ListenerRecord& listener) {
  ReportStatusListener command;
  command.run = run;
  command.listener = listener;
  command.at = absl::ToUnixMicros(clock_.Now());
  const auto outcome = store_.ApplyAndWait(std::move(command));
  if (!outcome.ok()) return outcome.status();
  if (!outcome->found) {
    const auto view = store_.GetRun(run);
    if (!view.ok()) return view.status();
    return *view ? errors::NoStatusListener(run) : errors::RunNotFound(run);
  }
  if (listener.port != 0 && outcome->listener.port != listener.port) {
    return errors::PortIsFixed(run, outcome->listener.port);
  }
  return absl::OkStatus();
}

}  // namespace muster
