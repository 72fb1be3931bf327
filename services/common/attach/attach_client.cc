#include "services/common/attach/attach_client.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "muster/v1/attachment.grpc.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/error.h"
#include "services/common/base/file_ops.h"
#include "services/common/base/log.h"
#include "services/common/base/random_id.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/proto_time.h"
#include "services/common/rpc/status.h"
#include "services/common/version.h"

namespace muster {
namespace {

constexpr absl::Duration kLeastWait = absl::Seconds(1);
constexpr absl::Duration kGreetingWithin = absl::Seconds(20);
constexpr absl::Duration kTick = absl::Seconds(1);
// A stream that lasted so long was a good one: the wait after it begins small again.
constexpr absl::Duration kSettled = absl::Seconds(3);
constexpr int64_t kMaxPem = 64 * 1024;

// What may wait to be sent, and from where on the owner hears that there is room again.
constexpr size_t kMaxQueued = 4 << 20;
constexpr size_t kRoomAgain = 1 << 20;

absl::Status Refused(std::string_view why) {
  return MakeError(absl::StatusCode::kUnauthenticated, "RELAY_REFUSED",
                   absl::StrCat("the relay: ", std::string(why)),
                   "Check the addresses of the relays, and that they are of this fleet.");
}

// The statement for the relay that greeted, by the newest key and certificate in the folder.
absl::StatusOr<v1::AttachStatement> MakeStatement(const AttachClientOptions& options,
                                                  const v1::AttachResponse::Greeting& greeting) {
  const auto key_pem = ReadSmallFile(PosixFileOps(), options.identity_folder + "/key.pem", kMaxPem);
  if (!key_pem.ok()) return key_pem.status();
  const auto chain = ReadSmallFile(PosixFileOps(), options.identity_folder + "/cert.pem", kMaxPem);
  if (!chain.ok()) return chain.status();
  const auto key = PrivateKey::FromPem(*key_pem);
  if (!key.ok()) return key.status();
  const auto leaf = Certificate::FromPem(*chain);
  if (!leaf.ok()) return leaf.status();
  const absl::Time expires = std::min(SystemClock().Now() + kMaxAttachment, leaf->NotAfter());
  return SignAttachStatement(*key, *chain, options.uri, greeting.relay(), greeting.key_sha256(),
                             expires);
}

// Whether the key in the greeting is the one of the certificate at the other end of the connection.
absl::Status CheckGreeting(const grpc::ClientContext& context,
                           const v1::AttachResponse::Greeting& greeting) {
  const auto auth = context.auth_context();
  const auto pem =
      auth == nullptr ? std::vector<grpc::string_ref>() : auth->FindPropertyValues("x509_pem_cert");
  if (pem.size() != 1) return Refused("it showed no certificate");
  const auto certificate = Certificate::FromPem({pem[0].data(), pem[0].size()});
  if (!certificate.ok()) return certificate.status();
  const auto uri = certificate->Uri();
  if (!uri.ok()) return uri.status();
  const auto key = certificate->Key();
  if (!key.ok()) return key.status();
  const auto sha256 = key->Sha256();
  if (!sha256.ok()) return sha256.status();
  if (*uri != greeting.relay() || *sha256 != greeting.key_sha256()) {
    return Refused("it greets as another than its certificate says");
  }
  return absl::OkStatus();
}

}  // namespace

// One stream. Its reactions call the delegate; the client's thread waits for its end.
class AttachClient::Stream : public grpc::ClientBidiReactor<v1::AttachRequest, v1::AttachResponse>,
                             public std::enable_shared_from_this<AttachClient::Stream> {
 public:
  Stream(const AttachClientOptions& options, AttachDelegate& delegate, std::string instance)
      : options_(options), delegate_(delegate), instance_(std::move(instance)) {}

  void Start(const std::shared_ptr<grpc::Channel>& channel) {
    self_ = shared_from_this();
    heard_at_ = SystemClock().MonotonicNow();
    stub_ = v1::AttachService::NewStub(channel);
    stub_->async()->Attach(&context_, this);
    AddHold();  // until End: messages are also sent from other threads
    StartRead(&response_);
    StartCall();
  }

  bool Send(v1::AttachRequest message) {
    std::lock_guard lock(mutex_);
    if (!welcomed_ || ending_) return false;
    if (queued_ > kMaxQueued) {
      refused_ = true;
      return false;
    }
    Queue(std::move(message));
    return true;
  }

  bool welcomed() const {
    std::lock_guard lock(mutex_);
    return welcomed_ && !ending_;
  }

  // Says something now and then, renews the statement, notices silence.
  void Tick() {
    const absl::Duration now = SystemClock().MonotonicNow();
    std::unique_lock lock(mutex_);
    if (ending_) return;
    const absl::Duration limit = welcomed_ ? 3 * interval_ : kGreetingWithin;
    if (now - heard_at_ > limit) {
      lock.unlock();
      return End(absl::DeadlineExceededError(welcomed_ ? "the relay fell silent"
                                                       : "the relay did not answer"));
    }
    if (welcomed_ && now > renew_at_) {
      lock.unlock();
      if (const absl::Status s = SayHello(); !s.ok()) End(s);
      return;
    }
    if (!welcomed_ || now - said_at_ < interval_) return;
    v1::AttachRequest beat;
    ToProto(SystemClock().Now(), beat.mutable_beat()->mutable_time());
    Queue(std::move(beat));
  }

  void End(const absl::Status& why) {
    {
      std::lock_guard lock(mutex_);
      if (ending_) return;
      ending_ = true;
      why_ = why;
    }
    context_.TryCancel();
    RemoveHold();
  }

  // Whether it has ended within `wait`; then why.
  std::optional<absl::Status> AwaitEnd(absl::Duration wait) {
    std::unique_lock lock(mutex_);
    done_.wait_for(lock, absl::ToChronoNanoseconds(wait), [this] { return end_.has_value(); });
    return end_;
  }

  std::optional<absl::Duration> retry_after() const {
    std::lock_guard lock(mutex_);
    return retry_after_;
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(absl::UnavailableError("the stream ended"));
    {
      std::lock_guard lock(mutex_);
      heard_at_ = SystemClock().MonotonicNow();
    }
    if (const absl::Status s = Take(); !s.ok()) return End(s);
    StartRead(&response_);
  }

  void OnWriteDone(bool ok) override {
    bool room = false;
    {
      std::lock_guard lock(mutex_);
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

  void OnDone(const grpc::Status& status) override {
    {
      std::lock_guard lock(mutex_);
      // What the relay said of the end says more than that it came.
      const bool told = !status.ok() && status.error_code() != grpc::StatusCode::CANCELLED;
      end_ = told || !why_ ? FromGrpc(status) : *why_;
      if (end_->ok()) end_ = absl::UnavailableError("the relay ended the stream");
      done_.notify_all();
    }
    self_.reset();
  }

 private:
  absl::Status Take() {
    switch (response_.message_case()) {
      case v1::AttachResponse::kGreeting:
        if (absl::Status s = CheckGreeting(context_, response_.greeting()); !s.ok()) return s;
        greeting_ = response_.greeting();
        return SayHello();
      case v1::AttachResponse::kWelcome:
        return TakeWelcome();
      case v1::AttachResponse::kBeat:
        return absl::OkStatus();
      case v1::AttachResponse::kGoAway: {
        std::lock_guard lock(mutex_);
        if (response_.go_away().has_retry_after()) {
          retry_after_ = FromProto(response_.go_away().retry_after());
        }
        return absl::UnavailableError(
            absl::StrCat("the relay sends its children away: ", response_.go_away().reason()));
      }
      case v1::AttachResponse::MESSAGE_NOT_SET:
        return absl::OkStatus();  // of a newer version
      default:
        delegate_.OnMessage(std::move(response_));
        return absl::OkStatus();
    }
  }

  absl::Status SayHello() {
    auto statement = MakeStatement(options_, greeting_);
    if (!statement.ok()) return statement.status();
    const absl::Duration life = FromProto(statement->expire_time()) - SystemClock().Now();
    v1::AttachRequest message;
    v1::AttachRequest::Hello& hello = *message.mutable_hello();
    *hello.mutable_statement() = *std::move(statement);
    hello.set_instance_id(instance_);
    hello.set_version(std::string(kVersion));
    hello.set_is_relay(options_.is_relay);
    for (const std::string& target : options_.relay_targets) hello.add_relay_targets(target);
    hello.set_revocations_version(delegate_.RevocationsVersion());
    std::lock_guard lock(mutex_);
    renew_at_ = SystemClock().MonotonicNow() + std::max(life / 2, kLeastWait);
    if (!ending_) Queue(std::move(message));
    return absl::OkStatus();
  }

  absl::Status TakeWelcome() {
    bool first = false;
    {
      std::lock_guard lock(mutex_);
      first = !std::exchange(welcomed_, true);
      interval_ = std::max(FromProto(response_.welcome().interval()), absl::Milliseconds(100));
    }
    return delegate_.OnWelcome(response_.welcome(), first);
  }

  // Called with the lock held, as the next.
  void Queue(v1::AttachRequest message) {
    queued_ += message.ByteSizeLong();
    queue_.push_back(std::move(message));
    if (!writing_) Write();
  }

  void Write() {
    writing_ = true;
    said_at_ = SystemClock().MonotonicNow();
    StartWrite(&queue_.front());
  }

  const AttachClientOptions& options_;
  AttachDelegate& delegate_;
  const std::string instance_;
  grpc::ClientContext context_;
  std::unique_ptr<v1::AttachService::Stub> stub_;
  std::shared_ptr<Stream> self_;  // until OnDone
  v1::AttachResponse response_;
  v1::AttachResponse::Greeting greeting_;

  mutable std::mutex mutex_;
  std::condition_variable done_;
  // All below are guarded by mutex_.
  std::deque<v1::AttachRequest> queue_;  // its first is being written, if writing_
  size_t queued_ = 0;
  bool writing_ = false;
  bool refused_ = false;
  bool welcomed_ = false;
  bool ending_ = false;
  absl::Duration interval_ = absl::Seconds(15);
  absl::Duration heard_at_;  // monotonic, as those that follow
  absl::Duration said_at_;
  absl::Duration renew_at_ = absl::InfiniteDuration();
  std::optional<absl::Duration> retry_after_;
  std::optional<absl::Status> why_;
  std::optional<absl::Status> end_;
};

AttachClient::AttachClient(AttachClientOptions options, AttachDelegate& delegate)
    : options_(std::move(options)), delegate_(delegate), instance_(RandomHex(16)) {}

void AttachClient::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

AttachClient::~AttachClient() {
  thread_.request_stop();
  changed_.notify_all();
}

bool AttachClient::Send(v1::AttachRequest message) {
  std::shared_ptr<Stream> stream;
  {
    std::lock_guard lock(mutex_);
    stream = stream_;
  }
  return stream != nullptr && stream->Send(std::move(message));
}

bool AttachClient::attached() const {
  std::lock_guard lock(mutex_);
  return stream_ != nullptr && stream_->welcomed();
}

std::string AttachClient::target() const { return Newest().target; }

std::shared_ptr<grpc::Channel> AttachClient::channel() const { return Newest().channel; }

// The parent that welcomed last: one that is only tried leads nowhere yet.
AttachClient::Parent AttachClient::Newest() const {
  std::lock_guard lock(mutex_);
  if (stream_ != nullptr && stream_->welcomed()) parent_ = trying_;
  return parent_;
}

// One stream to one parent, from its beginning to its end.
absl::Status AttachClient::Hold(const std::stop_token& stop, const std::string& target,
                                bool* welcomed) {
  const auto channel = MakeChannel(
      target,
      MakeChannelCredentials(ChannelIdentityFolder{options_.fleet, options_.identity_folder},
                             {ServiceRole::kRelay}),
      /*own_connection=*/true);
  const auto stream = std::make_shared<Stream>(options_, delegate_, instance_);
  {
    std::lock_guard lock(mutex_);
    stream_ = stream;
    trying_ = {target, channel};
  }
  stream->Start(channel);
  std::optional<absl::Status> end;
  while (!end) {
    end = stream->AwaitEnd(kTick);
    if (end) break;
    if (stop.stop_requested()) {
      stream->End(absl::CancelledError("this program stops"));
    } else {
      stream->Tick();
    }
    *welcomed = *welcomed || stream->welcomed();
    Newest();
  }
  {
    std::lock_guard lock(mutex_);
    stream_ = nullptr;
  }
  if (const auto retry = stream->retry_after()) *end = WithRetryAfter(*end, *retry);
  return *end;
}

void AttachClient::Run(const std::stop_token& stop) {
  absl::BitGen random;
  absl::Duration back_off = options_.first_back_off;
  size_t next = 0;
  while (!stop.stop_requested() && !options_.targets.empty()) {
    const std::string& target = options_.targets[next % options_.targets.size()];
    bool welcomed = false;
    const absl::Duration began = SystemClock().MonotonicNow();
    const absl::Status end = Hold(stop, target, &welcomed);
    if (stop.stop_requested()) return;
    Log(LogLevel::kWarning, "not attached", {{"relay", target}, {"reason", end}});
    if (welcomed) delegate_.OnLost(end);
    const bool lasted = welcomed && SystemClock().MonotonicNow() - began > kSettled;
    if (lasted) back_off = options_.first_back_off;
    // The parent it had is tried first; then the others, without a wait until all have been.
    next = lasted ? 0 : next + 1;
    if (!lasted && next % options_.targets.size() != 0) continue;
    absl::Duration wait = absl::Uniform(random, 0.0, 1.0) * back_off;
    wait = std::max(wait, RetryAfterOf(end).value_or(kLeastWait));
    back_off = std::min(back_off * 2, options_.longest_back_off);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, absl::ToChronoNanoseconds(wait), [] { return false; });
  }
}

}  // namespace muster
