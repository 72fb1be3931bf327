#include "services/common/attach/attach_stream.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/clock.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/rpc/status.h"
#include "services/common/version.h"

namespace muster {
namespace {

constexpr absl::Duration kLeastLife = absl::Seconds(1);
constexpr absl::Duration kGreetingWithin = absl::Seconds(20);
constexpr absl::Duration kLongestTick = absl::Seconds(1);
constexpr absl::Duration kTickUnwelcomed = absl::Milliseconds(100);
constexpr int64_t kMaxPem = 64 * 1024;

// What may wait to be sent, and from where on the owner hears that there is room again.
constexpr size_t kMaxQueued = 4 << 20;
constexpr size_t kRoomAgain = 1 << 20;

absl::Duration Now() { return SystemClock().MonotonicNow(); }

// The statement for the relay that greeted, by the newest key and certificate in the folder.
absl::StatusOr<v1::AttachStatement> MakeStatement(const AttachClientOptions& options,
                                                  const v1::AttachResponse::Greeting& greeting) {
  ASSIGN_OR_RETURN(const auto key_pem,
                   ReadSmallFile(PosixFileOps(), options.identity_folder + "/key.pem", kMaxPem));
  ASSIGN_OR_RETURN(const auto chain,
                   ReadSmallFile(PosixFileOps(), options.identity_folder + "/cert.pem", kMaxPem));
  ASSIGN_OR_RETURN(const auto key, PrivateKey::FromPem(key_pem));
  ASSIGN_OR_RETURN(const auto leaf, Certificate::FromPem(chain));
  const absl::Time expires = std::min(SystemClock().Now() + kMaxAttachment, leaf.NotAfter());
  return SignAttachStatement(key, chain, options.uri, greeting.relay(), greeting.key_sha256(),
                             expires);
}

// Whether the key in the greeting is the one of the certificate at the other end of the connection.
absl::Status CheckGreeting(const grpc::ClientContext& context,
                           const v1::AttachResponse::Greeting& greeting) {
  const auto auth = context.auth_context();
  const auto pem =
      auth == nullptr ? std::vector<grpc::string_ref>() : auth->FindPropertyValues("x509_pem_cert");
  if (pem.size() != 1) return errors::RelayRefused("it showed no certificate");
  ASSIGN_OR_RETURN(const auto certificate, Certificate::FromPem({pem[0].data(), pem[0].size()}));
  ASSIGN_OR_RETURN(const auto uri, certificate.Uri());
  ASSIGN_OR_RETURN(const auto key, certificate.Key());
  ASSIGN_OR_RETURN(const auto sha256, key.Sha256());
  if (uri != greeting.relay() || sha256 != greeting.key_sha256()) {
    return errors::RelayRefused("it greets as another than its certificate says");
  }
  return absl::OkStatus();
}

}  // namespace

AttachStream::AttachStream(const AttachClientOptions& options, AttachDelegate& delegate,
                           std::string instance)
    : options_(options), delegate_(delegate), instance_(std::move(instance)), aside_(false) {}

AttachStream::AttachStream(const AttachClientOptions& options, AttachDelegate& delegate,
                           std::string instance, std::string relay_now)
    : options_(options),
      delegate_(delegate),
      instance_(std::move(instance)),
      relay_now_(std::move(relay_now)),
      aside_(true) {}

AttachStream::~AttachStream() {
  if (stub_ == nullptr) return;  // never started
  End(absl::CancelledError("this program needs it no more"));
  MutexLock lock(mutex_);
  while (!end_.has_value()) changed_.Wait(mutex_);
}

void AttachStream::Start(const std::shared_ptr<grpc::Channel>& channel) {
  {
    MutexLock lock(mutex_);
    heard_at_ = Now();
  }
  stub_ = v1::AttachService::NewStub(channel);
  stub_->async()->Attach(&context_, this);
  AddHold();  // until End: messages are also sent from other threads
  StartRead(&response_);
  StartCall();
}

bool AttachStream::Send(v1::AttachRequest message) {
  MutexLock lock(mutex_);
  if (!welcomed_at_ || ending_) return false;
  if (queued_ > kMaxQueued) {
    refused_ = true;
    return false;
  }
  Queue(std::move(message));
  return true;
}

bool AttachStream::welcomed() const {
  MutexLock lock(mutex_);
  return welcomed_at_ && !ending_;
}

std::optional<absl::Duration> AttachStream::welcomed_at() const {
  MutexLock lock(mutex_);
  return welcomed_at_;
}

std::string AttachStream::relay() const {
  MutexLock lock(mutex_);
  return greeting_.relay();
}

absl::Duration AttachStream::tick() const {
  MutexLock lock(mutex_);
  return welcomed_at_ ? std::min(interval_ / 2, kLongestTick) : kTickUnwelcomed;
}

void AttachStream::Tick() {
  const absl::Duration now = Now();
  MutexLock lock(mutex_);
  if (ending_) return;
  const absl::Duration limit = welcomed_at_ ? 3 * interval_ : kGreetingWithin;
  if (now - heard_at_ > limit) {
    const char* const why = welcomed_at_ ? "the relay fell silent" : "the relay did not answer";
    lock.Unlock();
    return End(absl::DeadlineExceededError(why));
  }
  if (welcomed_at_ && now > renew_at_) {
    lock.Unlock();
    if (const absl::Status s = SayHello(); !s.ok()) End(s);
    return;
  }
  if (!welcomed_at_ || now - said_at_ < interval_) return;
  v1::AttachRequest beat;
  ToProto(SystemClock().Now(), beat.mutable_beat()->mutable_time());
  Queue(std::move(beat));
}

void AttachStream::End(const absl::Status& why) {
  {
    MutexLock lock(mutex_);
    if (ending_) return;
    ending_ = true;
    why_ = why;
  }
  context_.TryCancel();
  RemoveHold();
}

std::optional<absl::Status> AttachStream::AwaitEnd(absl::Duration wait) {
  MutexLock lock(mutex_);
  changed_.WaitFor(mutex_, wait,
                   [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return end_.has_value(); });
  return end_;
}

std::optional<absl::Status> AttachStream::AwaitOffer(absl::Duration wait) {
  MutexLock lock(mutex_);
  const auto offered = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return offered_ && !ending_; };
  changed_.WaitFor(mutex_, wait, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return offered() || end_.has_value();
  });
  if (offered()) return absl::OkStatus();
  return end_;
}

void AttachStream::Adopt() {
  {
    MutexLock lock(mutex_);
    aside_ = false;
    heard_at_ = Now();
  }
  Then then = Then::kRead;
  if (const absl::Status s = TakeWelcome(&then); !s.ok()) return End(s);
  StartRead(&response_);
}

void AttachStream::OnReadDone(bool ok) {
  if (!ok) return End(absl::UnavailableError("the stream ended"));
  {
    MutexLock lock(mutex_);
    heard_at_ = Now();
  }
  Then then = Then::kRead;
  if (const absl::Status s = Take(&then); !s.ok()) return End(s);
  if (then == Then::kRead) StartRead(&response_);
}

void AttachStream::OnWriteDone(bool ok) {
  bool room = false;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    queued_ -= queue_.front().ByteSizeLong();
    queue_.pop_front();
    if (!ok || ending_) return;
    if (!queue_.empty()) Write();
    room = refused_ && queued_ < kRoomAgain;
    if (room) refused_ = false;
  }
  if (room) delegate_.OnWritable();
}

void AttachStream::OnDone(const grpc::Status& status) {
  MutexLock lock(mutex_);
  // What the relay said of the end says more than that it came.
  const bool told = !status.ok() && status.error_code() != grpc::StatusCode::CANCELLED;
  end_ = told || !why_ ? FromGrpc(status) : *why_;
  if (end_->ok()) end_ = absl::UnavailableError("the relay ended the stream");
  changed_.NotifyAll();  // with the lock held: who hears of it may destroy this
}

absl::Status AttachStream::Take(Then* then) {
  switch (response_.message_case()) {
    case v1::AttachResponse::kGreeting:
      return TakeGreeting();
    case v1::AttachResponse::kWelcome:
      return TakeWelcome(then);
    case v1::AttachResponse::kBeat:
      return absl::OkStatus();
    case v1::AttachResponse::MESSAGE_NOT_SET:
      return absl::OkStatus();  // of a newer version
    default:
      delegate_.OnMessage(std::move(response_));
      return absl::OkStatus();
  }
}

absl::Status AttachStream::TakeGreeting() {
  RETURN_IF_ERROR(CheckGreeting(context_, response_.greeting()));
  {
    MutexLock lock(mutex_);
    greeting_ = response_.greeting();
    if (aside_ && greeting_.relay() == relay_now_) {
      return absl::AlreadyExistsError("it is the same relay at another address");
    }
  }
  return SayHello();
}

absl::Status AttachStream::SayHello() {
  v1::AttachResponse::Greeting greeting;
  {
    MutexLock lock(mutex_);
    greeting = greeting_;
  }
  ASSIGN_OR_RETURN(auto statement, MakeStatement(options_, greeting));
  const absl::Duration life = FromProto(statement.expire_time()) - SystemClock().Now();
  v1::AttachRequest message;
  v1::AttachRequest::Hello& hello = *message.mutable_hello();
  *hello.mutable_statement() = std::move(statement);
  hello.set_instance_id(instance_);
  hello.set_version(std::string(kVersion));
  hello.set_is_relay(options_.is_relay);
  for (const std::string& target : options_.relay_targets) hello.add_relay_targets(target);
  hello.set_revocations_version(delegate_.RevocationsVersion());
  MutexLock lock(mutex_);
  renew_at_ = Now() + std::max(life / 2, kLeastLife);
  if (!ending_) Queue(std::move(message));
  return absl::OkStatus();
}

absl::Status AttachStream::TakeWelcome(Then* then) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    if (aside_) {
      RETURN_IF_ERROR(CheckOffer());
      // What comes after it is for the delegate, which is not to hear of it yet.
      offered_ = true;
      *then = Then::kWait;
      changed_.NotifyAll();
      return absl::OkStatus();
    }
    first = !welcomed_at_;
    if (first) welcomed_at_ = Now();
    interval_ = std::max(FromProto(response_.welcome().interval()), absl::Milliseconds(100));
  }
  return delegate_.OnWelcome(response_.welcome(), first);
}

// A stream that stands is left for a better one only.
absl::Status AttachStream::CheckOffer() const {
  if (!response_.welcome().connected()) {
    return absl::UnavailableError("the relay itself has no way to the centre");
  }
  const auto& path = response_.welcome().path();
  const bool below = std::any_of(path.begin(), path.end(), [this](const std::string& relay) {
    return absl::EndsWith(options_.uri, absl::StrCat("/relay/", relay));
  });
  return below ? absl::FailedPreconditionError("the relay hangs below this one") : absl::OkStatus();
}

void AttachStream::Queue(v1::AttachRequest message) {
  queued_ += message.ByteSizeLong();
  queue_.push_back(std::move(message));
  if (!writing_) Write();
}

void AttachStream::Write() {
  writing_ = true;
  said_at_ = Now();
  StartWrite(&queue_.front());
}

}  // namespace muster
