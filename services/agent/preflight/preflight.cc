#include "services/agent/preflight/preflight.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/agent/preflight/authorisation.h"
#include "services/agent/preflight/tls_probe.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/strings.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/channel_target.h"
#include "services/common/rpc/connection_error.h"

namespace muster {
namespace {

using Check = client::Fault::Check;
using client::Fault;

// Certificates are backdated by more than this: a smaller clock skew is harmless.
constexpr absl::Duration kMaxSkew = absl::Minutes(5);
// The limit for the answer to the first heartbeat.
constexpr absl::Duration kClockLimit = absl::Seconds(3);
constexpr absl::Duration kPoll = absl::Milliseconds(20);
// Between two checks of the connection.
constexpr absl::Duration kLeastWait = absl::Seconds(5);

std::string_view NameOf(Check check) {
  switch (check) {
    case Check::kNameResolution:
      return "name resolution";
    case Check::kConnection:
      return "connection";
    case Check::kTls:
      return "TLS";
    case Check::kClock:
      return "clock";
    case Check::kAuthorisation:
      return "authorisation";
  }
  return "";
}

// Returns "host:port" of "https://host:port/path".
std::string AddressOf(std::string_view url) {
  url.remove_prefix(std::string_view("https://").size());
  const std::string place(url.substr(0, url.find('/')));
  const bool has_port = place.rfind(':') != std::string::npos &&
                        place.find(']', place.rfind(':')) == std::string::npos;
  return has_port ? place : place + ":443";
}

TlsProbe ProbeOf(const client::Config& config, const std::string& target) {
  TlsProbe probe{target, config.fleet_ca_cert, config.client_cert, config.client_key, ""};
  if (config.grpc_targets.empty()) {
    probe.address = AddressOf(config.aggregator_url);
    probe.trusted_pem = config.ca_cert;
    return probe;
  }
  const auto leaf = Certificate::FromPem(config.client_cert);
  const auto uri = leaf.ok() ? leaf->Uri() : leaf.status();
  const auto identity = uri.ok() ? ParseOwnIdentity(*uri) : uri.status();
  if (identity.ok()) probe.fleet = identity->fleet;
  return probe;
}

std::optional<absl::Duration> ClockOffset(const client::Client& client,
                                          const std::stop_token& stop) {
  const absl::Duration end = SystemClock().MonotonicNow() + kClockLimit;
  while (SystemClock().MonotonicNow() < end) {
    if (const auto offset = client.ClockOffset()) return absl::FromChrono(*offset);
    if (!client.HeartbeatStatus().ok() || !WaitFor(kPoll, stop)) break;
  }
  return std::nullopt;
}

std::optional<Fault> CheckClock(const client::Config& config, const client::Client& client,
                                const std::string& address, const std::stop_token& stop) {
  const auto leaf = Certificate::FromPem(config.client_cert);
  if (leaf.ok() && leaf->NotBefore() > absl::Now()) {
    return Fault{
        Check::kClock, address,
        absl::StrCat("the client certificate is valid from ", absl::FormatTime(leaf->NotBefore()),
                     ", but this machine's clock shows ", absl::FormatTime(absl::Now())),
        "Set this machine's clock."};
  }
  // Without heartbeats the fleet's clock is unknown.
  if (!config.grpc_targets.empty() && config.status_targets.empty()) return std::nullopt;
  const auto offset = ClockOffset(client, stop);
  if (!offset || absl::AbsDuration(*offset) <= kMaxSkew) return std::nullopt;
  return Fault{
      Check::kClock, address,
      absl::StrCat("this machine's clock is ",
                   absl::FormatDuration(absl::Trunc(absl::AbsDuration(*offset), absl::Seconds(1))),
                   *offset > absl::ZeroDuration() ? " behind" : " ahead of", " the fleet's"),
      "Set this machine's clock; certificates are checked against it."};
}

// Interprets the answer to the authorisation check. Temporary errors are not faults.
std::optional<Fault> Judge(const absl::Status& status, const std::string& address) {
  Check check = Check::kAuthorisation;
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kNotFound:
      break;
    case absl::StatusCode::kUnavailable:
      if (!IsConnectionError(ReasonOf(status))) return std::nullopt;
      check = Check::kConnection;
      break;
    default:
      return std::nullopt;
  }
  return Fault{check, address, std::string(status.message()), NextStepOf(status)};
}

// Checks one address.
std::optional<Fault> CheckTarget(const client::Config& config, const client::Client& client,
                                 const std::string& target, const std::stop_token& stop) {
  const TlsProbe probe = ProbeOf(config, target);
  // The probe knows no tunnels: the question shows whether this one works.
  if (!IsTunnel(std::string_view(target))) {
    if (auto fault = ProbeTls(probe, stop)) return fault;
  }
  if (auto fault = CheckClock(config, client, probe.address, stop)) return fault;
  if (stop.stop_requested()) return std::nullopt;
  return Judge(config.grpc_targets.empty() ? AskListener(config, stop)
                                           : AskService(config, target, stop).status(),
               probe.address);
}

bool Same(const std::optional<Fault>& a, const std::optional<Fault>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->check == b->check && a->address == b->address && a->message == b->message;
}

}  // namespace

std::optional<Fault> CheckConnection(const client::Config& config, const client::Client& client,
                                     const std::stop_token& stop) {
  if (config.grpc_targets.empty()) return CheckTarget(config, client, "", stop);
  std::optional<Fault> furthest;
  for (const std::string& target : config.grpc_targets) {
    auto fault = CheckTarget(config, client, target, stop);
    if (!fault) return std::nullopt;
    if (!furthest || fault->check > furthest->check) furthest = std::move(fault);
  }
  return furthest;
}

Preflight::Preflight(const client::Config& config, client::Client& client)
    : config_(config),
      client_(client),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Preflight::~Preflight() = default;

bool Preflight::AwaitFirst(absl::Duration limit, const std::stop_token& stop) {
  MutexLock lock(mutex_);
  return changed_.WaitFor(mutex_, stop, limit,
                          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return checked_; });
}

void Preflight::Run(const std::stop_token& stop) {
  Backoff backoff;
  while (!stop.stop_requested()) {
    const auto fault = CheckConnection(config_, client_, stop);
    if (stop.stop_requested()) return;
    Report(fault);
    if (!fault) return;
    // The delivery retries more often: this loop only detects the end of the fault.
    if (!WaitFor(backoff.Next(kLeastWait), stop)) return;
  }
}

void Preflight::Report(const std::optional<Fault>& fault) {
  if (!Same(fault, last_)) {
    client_.SetFault(fault);
    if (fault) {
      Log(LogLevel::kWarning, "the connection check failed",
          {{"check", NameOf(fault->check)},
           {"address", fault->address},
           {"error", fault->message},
           {"next_step", fault->next_step}});
    } else {
      Log(LogLevel::kInfo, "the connection check passed", {});
    }
    last_ = fault;
  }
  MutexLock lock(mutex_);
  checked_ = true;
  changed_.NotifyAll();
}

}  // namespace muster
