#include "services/aggregator/runs/status_listeners.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/runs.h"
#include "services/common/identity/custom_certificate.h"

namespace muster {

namespace {

struct Files {
  std::string client_ca_pem;                      // empty: none was provided
  std::optional<CustomServerCertificate> server;  // nullopt: the fleet's
};

absl::StatusOr<Files> ReadFiles(std::string_view client_ca_pem, std::string_view certificate_pem,
                                std::string_view key_pem, absl::Time now) {
  Files files;
  const bool brings_server = !certificate_pem.empty() || !key_pem.empty();
  if (!client_ca_pem.empty() || !brings_server) {
    ASSIGN_OR_RETURN(files.client_ca_pem, ReadCustomClientCas(client_ca_pem, now));
  }
  if (brings_server) {
    ASSIGN_OR_RETURN(files.server, ReadCustomServerCertificate(certificate_pem, key_pem, now));
  }
  return files;
}

}  // namespace

absl::Status StatusListeners::Check(std::string_view client_ca_pem,
                                    std::string_view certificate_pem,
                                    std::string_view key_pem) const {
  return ReadFiles(client_ca_pem, certificate_pem, key_pem, clock_.Now()).status();
}

absl::Status StatusListeners::Set(const std::string& run, std::string_view client_ca_pem,
                                  std::string_view certificate_pem, std::string_view key_pem,
                                  const Actor& actor) {
  const absl::Time now = clock_.Now();
  SetStatusListener command;
  command.run = run;
  command.hosts = hosts_;
  command.actor = actor;
  command.at = absl::ToUnixMicros(now);
  ASSIGN_OR_RETURN(auto files, ReadFiles(client_ca_pem, certificate_pem, key_pem, now));
  command.listener.client_ca_pem = std::move(files.client_ca_pem);
  if (files.server) {
    std::ranges::stable_partition(
        command.hosts, [&](const std::string& host) { return ServesHost(*files.server, host); });
    ASSIGN_OR_RETURN(auto wrapped, authorities_.WrapStatusKey(files.server->key_pem, run));
    command.listener.certificate_pem = std::move(files.server->chain_pem);
    command.listener.wrapped_key = std::move(wrapped);
  }
  ASSIGN_OR_RETURN(const auto outcome, store_.ApplyAndWait(std::move(command)));
  switch (outcome.verdict) {
    case SetStatusListener::Verdict::kSet:
      Log(LogLevel::kInfo, "separate status listener of the run stored", {{"run", run}});
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
  ASSIGN_OR_RETURN(auto record, store_.GetStatusListener(run));
  if (record) return *std::move(record);
  ASSIGN_OR_RETURN(const auto view, store_.GetRun(run));
  if (!view) return errors::RunNotFound(run);
  return view->run.status_listener ? errors::RunEnded(run) : errors::NoStatusListener(run);
}

absl::StatusOr<ServedStatusListener> StatusListeners::Get(const std::string& run) {
  ASSIGN_OR_RETURN(auto record, Read(run));
  ServedStatusListener served;
  served.client_ca_pem = std::move(record.client_ca_pem);
  served.certificate_pem = std::move(record.certificate_pem);
  if (record.wrapped_key.empty()) return served;
  ASSIGN_OR_RETURN(served.key_pem, authorities_.UnwrapStatusKey(record.wrapped_key, run));
  return served;
}

absl::StatusOr<std::string> StatusListeners::ServerCaPem(const std::string& run) {
  ASSIGN_OR_RETURN(auto record, Read(run));
  return std::move(record.certificate_pem);
}

absl::Status StatusListeners::Report(const std::string& run, const ListenerRecord& listener) {
  ReportStatusListener command;
  command.run = run;
  command.listener = listener;
  command.at = absl::ToUnixMicros(clock_.Now());
  ASSIGN_OR_RETURN(const auto outcome, store_.ApplyAndWait(std::move(command)));
  if (!outcome.found) {
    ASSIGN_OR_RETURN(const auto view, store_.GetRun(run));
    return view ? errors::NoStatusListener(run) : errors::RunNotFound(run);
  }
  if (listener.port != 0 && outcome.listener.port != listener.port) {
    return errors::PortIsFixed(run, outcome.listener.port);
  }
  return absl::OkStatus();
}

}  // namespace muster
