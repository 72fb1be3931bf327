#include "services/client/client.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "services/client/attempt_state.h"
#include "services/client/client_config.h"
#include "services/client/client_status.h"
#include "services/client/delayed_stop.h"
#include "services/client/delivery.h"
#include "services/client/done_file.h"
#include "services/client/grpc_transport.h"
#include "services/client/heartbeat_stream.h"
#include "services/client/heartbeats.h"
#include "services/client/https_heartbeats.h"
#include "services/client/https_transport.h"
#include "services/client/media_type.h"
#include "services/client/progress_reporter.h"
#include "services/client/sender.h"
#include "services/client/sender_activity.h"
#include "services/client/status_channels.h"
#include "services/client/stream_spool.h"
#include "services/common/base/error.h"
#include "services/common/base/mutex.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"
#include "services/common/errors/client.h"
#include "services/common/identity/certificate.h"

namespace muster::client {
namespace {

constexpr size_t kMaxErrorText = size_t{64} << 10;
// The time after a run's deadline in which late results are accepted.
constexpr absl::Duration kSealGrace = absl::Seconds(120);

}  // namespace

class Client::Impl {
 public:
  explicit Impl(Config config) : config_(std::move(config)) {
    if (config_.deadline) deadline_ = absl::FromChrono(*config_.deadline);
  }

  absl::Status Prepare() {
    RETURN_IF_ERROR(CheckNames(config_));
    return config_.grpc_targets.empty() ? PrepareHttps() : PrepareGrpc();
  }

  absl::StatusOr<CommitReceipt> Submit(absl::StatusOr<std::unique_ptr<SourceFile>> file,
                                       const SubmitOptions& options, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) {
    if (!file.ok()) return file.status();
    const int64_t size = (*file)->size();
    if (size > config_.max_result_bytes) {
      return errors::ResultTooLarge((*file)->path(), size, config_.max_result_bytes);
    }
    ResultInfo info = NewInfo();
    info.file_name = options.file_name.empty()
                         ? std::filesystem::path((*file)->path()).filename().string()
                         : options.file_name;
    info.file_name = CleanUtf8(info.file_name);  // a file name may contain any bytes
    info.media_type = options.media_type.empty() ? std::string(MediaTypeOf(info.file_name))
                                                 : CleanUtf8(options.media_type);
    return Send(std::move(info), *std::move(file), stop);
  }

  // Delivers an error result with `why`.
  Delivery DeliverError(const absl::Status& why, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) {
    const std::string next_step = NextStepOf(why);
    Delivery delivery =
        DeliverErrorText(absl::StrCat(ReasonOf(why), ReasonOf(why).empty() ? "" : ": ",
                                      why.message(), next_step.empty() ? "" : "\n", next_step),
                         stop);
    std::string& next = delivery.status.next_step;
    if (delivery.status.code == Code::kErrorDelivered) {
      delivery.status = {Code::kErrorDelivered, ReasonOf(why), std::string(why.message()),
                         next_step};
    } else if (!next_step.empty()) {
      next = absl::StrCat(next_step, next.empty() ? "" : " ", next);
    }
    return delivery;
  }

  Delivery DeliverErrorText(const std::string& text, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) {
    ResultInfo info = NewInfo();
    info.is_error = true;
    info.media_type = "text/plain; charset=utf-8";
    std::string body(CutUtf8(CleanUtf8(text), kMaxErrorText));
    if (over_https_) {
      info.media_type = "application/json";
      body = nlohmann::json({{"error", body}})
                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    auto file =
        SourceFile::FromText(std::string_view(body).substr(0, kMaxErrorText), "the error text");
    auto receipt = file.ok() ? Send(std::move(info), *std::move(file), stop)
                             : absl::StatusOr<CommitReceipt>(file.status());
    Delivery delivery = ToDelivery(receipt);
    delivery.is_error = true;
    const std::string summary = text.substr(0, text.find('\n'));
    if (receipt.ok()) {
      delivery.status.code = Code::kErrorDelivered;
      delivery.status.reason = "ERROR_RESULT";
      delivery.status.message = summary;
    } else {
      absl::StrAppend(&delivery.status.message, "; not delivered: ", summary);
    }
    return delivery;
  }

  // Delivers a genuine result, or an error result if the source is faulty.
  Delivery SubmitOrExplain(absl::StatusOr<std::unique_ptr<SourceFile>> file,
                           const SubmitOptions& options, const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) {
    const auto receipt = Submit(std::move(file), options, stop);
    return IsFaultOfSource(receipt.status()) ? DeliverError(receipt.status(), stop)
                                             : ToDelivery(receipt);
  }

  absl::Status Report(const Progress& progress) {
    const absl::Status status = ReportOnce(progress);
    if (status.ok()) {
      activity_.DropProgress();
    } else if (status.code() == absl::StatusCode::kUnavailable ||
               status.code() == absl::StatusCode::kDeadlineExceeded) {
      activity_.KeepProgress(progress);
    }
    return status;
  }

  void StartHeartbeats(HeartbeatWatcher watcher) {
    HeartbeatDialer dial;
    if (channels_) {
      dial = MakeStreamDialer(channels_, {config_.run, config_.plugin, config_.node});
    } else if (over_https_) {
      dial = MakeHttpsDialer(Https(), config_.plugin, config_.node);
    } else {
      return;
    }
    std::function<void(const absl::Status&)> watch;
    if (watcher) {
      watch = [watcher = std::move(watcher)](const absl::Status& status) {
        watcher(ToClientStatus(status));
      };
    }
    MutexLock lock(heartbeats_mutex_);
    if (heartbeats_) return;
    heartbeats_ = std::make_unique<Heartbeats>(activity_, std::move(dial), std::move(watch));
  }

  void StopHeartbeats() {
    std::unique_ptr<Heartbeats> ending;  // destroyed without the lock, which its watcher may take
    MutexLock lock(heartbeats_mutex_);
    ending = std::move(heartbeats_);
  }

  absl::Status heartbeat_status() const {
    MutexLock lock(heartbeats_mutex_);
    return heartbeats_ ? heartbeats_->status() : absl::OkStatus();
  }

  std::optional<absl::Duration> clock_offset() const {
    MutexLock lock(heartbeats_mutex_);
    return heartbeats_ ? heartbeats_->clock_offset() : std::nullopt;
  }

  void set_deadline(absl::Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) {
    deadline_ = deadline;
  }

  void set_wait_watcher(WaitWatcher watcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) {
    wait_watcher_ = std::move(watcher);
  }

  // Opens the state folder, which is created if it is missing.
  absl::Status OpenAttempts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) {
    if (attempts_) return absl::OkStatus();
    ASSIGN_OR_RETURN(attempts_, AttemptState::Open(config_.state_dir, config_.run, config_.plugin,
                                                   config_.node));
    return absl::OkStatus();
  }

  SenderActivity& activity() { return activity_; }
  const Config& config() const { return config_; }
  Mutex& one_at_a_time() ABSL_LOCK_RETURNED(one_at_a_time_) { return one_at_a_time_; }

  static Delivery ToDelivery(const absl::StatusOr<CommitReceipt>& receipt) {
    Delivery delivery;
    delivery.status = ToClientStatus(receipt.status());
    if (receipt.ok()) {
      delivery.receipt = {receipt->generation, receipt->size,
                          absl::BytesToHexString(ToAbsl(receipt->sha256))};
    }
    return delivery;
  }

 private:
  absl::Status PrepareGrpc() {
    ASSIGN_OR_RETURN(const auto sender, Sender::Make(config_, absl::Now()));
    if (config_.run.empty()) return errors::ConfigInvalid("configuration", "run", "it is missing");
    certificate_ends_ = sender->not_after();
    if (!config_.status_targets.empty()) {
      channels_ = MakeStatusChannels(config_.status_targets, *sender);
      reporter_ = std::make_unique<ProgressReporter>(channels_);
    }
    transport_ = MakeGrpcTransport(config_.grpc_targets, sender);
    return absl::OkStatus();
  }

  absl::Status PrepareHttps() {
    if (!config_.aggregator_url.starts_with("https://")) {
      return errors::ConfigInvalid("configuration", "aggregator_url",
                                   "it does not begin with https://");
    }
    const auto certificate = Certificate::FromPem(config_.client_cert);
    if (!certificate.ok()) {
      return errors::ConfigInvalid("configuration", "client_cert",
                                   ToStd(certificate.status().message()));
    }
    const auto key = PrivateKey::FromPem(config_.client_key);
    if (!key.ok())
      return errors::ConfigInvalid("configuration", "client_key", ToStd(key.status().message()));
    if (!certificate->Matches(*key)) {
      return errors::ConfigInvalid("configuration", "client_key",
                                   "it does not belong to client_cert");
    }
    certificate_ends_ = certificate->NotAfter();
    if (certificate_ends_ <= absl::Now()) return errors::CertificateEnded(certificate_ends_);
    if (auto ca = ParseChain(config_.ca_cert); !ca.ok()) {
      return errors::ConfigInvalid("configuration", "ca_cert", ToStd(ca.status().message()));
    }
    over_https_ = true;
    transport_ = MakeHttpsTransport(Https());
    return absl::OkStatus();
  }

  absl::Status ReportOnce(const Progress& progress) {
    if (reporter_) return reporter_->Report(config_, progress);
    if (config_.aggregator_url.empty()) {
      return errors::ConfigInvalid("configuration", "status_targets", "it is missing");
    }
    const auto answer =
        RelayProgress(Https(), config_.plugin, config_.node, ProgressJson(progress));
    return answer.ok() ? answer->status : answer.status();
  }

  HttpsOptions Https() const {
    return {config_.aggregator_url, config_.ca_cert, config_.client_cert, config_.client_key};
  }

  ResultInfo NewInfo() const {
    ResultInfo info;
    info.run = config_.run;
    info.plugin = config_.plugin;
    info.node = config_.node;
    return info;
  }

  absl::Time GiveUp() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) {
    return std::min(certificate_ends_, deadline_ + kSealGrace);
  }

  absl::StatusOr<CommitReceipt> Send(ResultInfo info, std::unique_ptr<SourceFile> file,
                                     const std::stop_token& stop)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) {
    RETURN_IF_ERROR(OpenAttempts());
    ASSIGN_OR_RETURN(info.attempt, attempts_->Begin(file->fingerprint()));
    OutgoingResult result(std::move(info), std::move(file));
    const PhaseScope delivering(activity_, Phase::kDelivering);
    return DeliverUntilCommitted(
        *transport_, result, *attempts_, GiveUp(), stop,
        [this](const absl::Status& wait)
            ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) { ReportWait(wait); },
        config_.leave_when_spooled);
  }

  // Reports the reason why a delivery waits, in heartbeats and to the watcher.
  void ReportWait(const absl::Status& wait) ABSL_EXCLUSIVE_LOCKS_REQUIRED(one_at_a_time_) {
    const bool asked_to_wait =
        wait.code() == absl::StatusCode::kResourceExhausted || RetryAfterOf(wait).has_value();
    activity_.SetPhase(asked_to_wait ? Phase::kBackpressured : Phase::kDelivering,
                       std::string(wait.message()));
    if (wait_watcher_ && !wait.ok()) wait_watcher_(ToClientStatus(wait));
  }

  const Config config_;
  bool over_https_ = false;
  absl::Time certificate_ends_;
  std::unique_ptr<ResultTransport> transport_;
  std::shared_ptr<const StatusChannels> channels_;
  std::unique_ptr<ProgressReporter> reporter_;
  SenderActivity activity_;
  Mutex one_at_a_time_;
  std::unique_ptr<AttemptState> attempts_ ABSL_GUARDED_BY(one_at_a_time_);
  absl::Time deadline_ ABSL_GUARDED_BY(one_at_a_time_) = absl::InfiniteFuture();
  WaitWatcher wait_watcher_ ABSL_GUARDED_BY(one_at_a_time_);
  mutable Mutex heartbeats_mutex_;
  std::unique_ptr<Heartbeats> heartbeats_
      ABSL_GUARDED_BY(heartbeats_mutex_);  // declared last: it uses the members above
};

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

std::unique_ptr<Client> Client::Create(const Config& config, Status* status) {
  auto impl = std::make_unique<Impl>(config);
  const absl::Status prepared = impl->Prepare();
  *status = ToClientStatus(prepared);
  if (!prepared.ok()) return nullptr;
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

void Client::WatchWaits(WaitWatcher watcher) {
  MutexLock lock(impl_->one_at_a_time());
  impl_->set_wait_watcher(std::move(watcher));
}

Delivery Client::SubmitFile(const std::string& path, const SubmitOptions& options,
                            const std::stop_token& stop) {
  MutexLock lock(impl_->one_at_a_time());
  auto file = options.no_links ? SourceFile::OpenResolved(path) : SourceFile::Open(path);
  if (!file.ok()) {
    return Impl::ToDelivery(
        errors::ConfigInvalid("result file", "", ToStd(file.status().message())));
  }
  return impl_->SubmitOrExplain(std::move(file), options, stop);
}

Delivery Client::SubmitStream(const Reader& reader, const SubmitOptions& options,
                              const std::stop_token& stop) {
  MutexLock lock(impl_->one_at_a_time());
  // The stream is spooled in the state folder.
  if (const absl::Status opened = impl_->OpenAttempts(); !opened.ok()) {
    return {ToClientStatus(opened), {}};
  }
  return impl_->SubmitOrExplain(
      SpoolStream(reader, impl_->config().state_dir, impl_->config().max_result_bytes), options,
      stop);
}

Delivery Client::SubmitError(const std::string& text, const std::stop_token& stop) {
  MutexLock lock(impl_->one_at_a_time());
  return impl_->DeliverErrorText(text, stop);
}

Status Client::ReportProgress(const Progress& progress) {
  return ToClientStatus(impl_->Report(progress));
}

void Client::StartHeartbeats(HeartbeatWatcher watcher) {
  impl_->StartHeartbeats(std::move(watcher));
}

void Client::StopHeartbeats() { impl_->StopHeartbeats(); }

Status Client::HeartbeatStatus() const { return ToClientStatus(impl_->heartbeat_status()); }

void Client::SetPhase(Phase phase, const std::string& message) {
  impl_->activity().SetPhase(phase, message);
}

void Client::SetFault(const std::optional<Fault>& fault) { impl_->activity().SetFault(fault); }

std::optional<std::chrono::milliseconds> Client::ClockOffset() const {
  const auto offset = impl_->clock_offset();
  if (!offset) return std::nullopt;
  return absl::ToChronoMilliseconds(*offset);
}

void Client::SetDeadline(std::chrono::system_clock::time_point deadline) {
  MutexLock lock(impl_->one_at_a_time());
  impl_->set_deadline(absl::FromChrono(deadline));
}

Delivery Client::WaitForDoneFileAndDeliver(const std::stop_token& stop) {
  MutexLock lock(impl_->one_at_a_time());
  const PhaseScope waiting(impl_->activity(), Phase::kWaiting);
  const DelayedStop late(kStopGrace, stop);
  const auto path =
      WaitForDoneFile({impl_->config().results_dir, impl_->config().done_file_delay}, late.token());
  if (!path.ok()) {
    if (ReasonOf(path.status()) == "INTERRUPTED") return {ToClientStatus(path.status()), {}};
    return impl_->DeliverError(path.status(), late.token());
  }
  auto file = SourceFile::OpenResolved(*path);
  if (!file.ok()) return impl_->DeliverError(file.status(), late.token());
  return impl_->SubmitOrExplain(std::move(file), {}, late.token());
}

}  // namespace muster::client
