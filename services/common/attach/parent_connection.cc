#include "services/common/attach/parent_connection.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/file_ops.h"
#include "services/common/base/status_macros.h"
#include "services/common/errors/relay.h"
#include "services/common/identity/attach_statement.h"
#include "services/common/identity/certificate.h"
#include "services/common/identity/key.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/client_stream.h"

namespace muster {
namespace {

constexpr int64_t kMaxPem = 64 * 1024;

// The most that waits to be sent to a parent.
constexpr size_t kMaxQueued = 4 << 20;

using GrpcStream = ClientStream<v1::AttachRequest, v1::AttachResponse>;

// Passes the callbacks of a stream on.
class EventForwarder final : public GrpcStream::Handler {
 public:
  explicit EventForwarder(ParentStreamEvents& events) : events_(events) {}

  void OnStart(const std::shared_ptr<GrpcStream>&) override {}
  void OnMessage(v1::AttachResponse message) override { events_.OnMessage(std::move(message)); }
  void OnWritable() override { events_.OnWritable(); }
  void OnEnd(const absl::Status& status, EndedBy) override { events_.OnEnd(status); }

 private:
  ParentStreamEvents& events_;
};

StreamOptions Options() {
  StreamOptions options;
  options.first_within = absl::ZeroDuration();  // the attachment limits the wait by its own clock
  options.max_queued = std::numeric_limits<size_t>::max();
  options.max_queued_bytes = kMaxQueued;
  options.notify_when_sent = true;
  return options;
}

class GrpcParentStream final : public ParentStream {
 public:
  GrpcParentStream(const std::shared_ptr<grpc::Channel>& channel, ParentStreamEvents& events)
      : stream_(GrpcStream::Start(channel, "/muster.v1.AttachService/Attach", Options(),
                                  std::make_shared<EventForwarder>(events))) {}

  void ReadNext() override { stream_->ReadNext(); }
  Sent Send(v1::AttachRequest message) override { return stream_->Send(std::move(message)); }
  void Cancel(const absl::Status& why) override { stream_->Cancel(why); }
  void Close() override {
    stream_->Cancel(absl::CancelledError("the stream is no longer needed"));
    stream_->release()->Wait();
  }

  absl::Status CheckGreeting(const v1::AttachResponse::Greeting& greeting) override {
    const auto auth = stream_->context().auth_context();
    const auto pem = auth == nullptr ? std::vector<grpc::string_ref>()
                                     : auth->FindPropertyValues("x509_pem_cert");
    if (pem.size() != 1) return errors::RelayRefused("it showed no certificate");
    ASSIGN_OR_RETURN(const auto certificate, Certificate::FromPem({pem[0].data(), pem[0].size()}));
    ASSIGN_OR_RETURN(const auto uri, certificate.Uri());
    ASSIGN_OR_RETURN(const auto key, certificate.Key());
    ASSIGN_OR_RETURN(const auto sha256, key.Sha256());
    if (uri != greeting.relay() || sha256 != greeting.key_sha256()) {
      return errors::RelayRefused("its greeting does not match its certificate");
    }
    return absl::OkStatus();
  }

 private:
  const StreamOwner<v1::AttachRequest, v1::AttachResponse> stream_;
};

class GrpcParentConnector final : public ParentConnector {
 public:
  GrpcParentConnector(const AttachClientOptions& options, const Clock& clock)
      : options_(options), clock_(clock) {}

  ParentConnection Connect(const HostPort& target) override {
    auto channel = MakeChannel(
        absl::MakeConstSpan(&target, 1),
        MakeChannelCredentials(ChannelIdentityFolder{options_.fleet, options_.identity_folder},
                               {ServiceRole::kRelay}),
        /*own_connection=*/true);
    return {channel, [channel](ParentStreamEvents& events) {
              return std::make_unique<GrpcParentStream>(channel, events);
            }};
  }

  absl::StatusOr<v1::AttachStatement> Sign(const v1::AttachResponse::Greeting& greeting) override {
    const std::string& folder = options_.identity_folder;
    ASSIGN_OR_RETURN(const auto key_pem,
                     ReadSmallFile(PosixFileOps(), folder + "/key.pem", kMaxPem));
    ASSIGN_OR_RETURN(const auto chain,
                     ReadSmallFile(PosixFileOps(), folder + "/cert.pem", kMaxPem));
    ASSIGN_OR_RETURN(const auto key, PrivateKey::FromPem(key_pem));
    ASSIGN_OR_RETURN(const auto leaf, Certificate::FromPem(chain));
    const absl::Time expires = std::min(clock_.Now() + kMaxAttachment, leaf.NotAfter());
    return SignAttachStatement(key, chain, options_.uri, greeting.relay(), greeting.key_sha256(),
                               expires);
  }

 private:
  const AttachClientOptions& options_;
  const Clock& clock_;
};

}  // namespace

std::unique_ptr<ParentConnector> MakeParentConnector(const AttachClientOptions& options,
                                                     const Clock& clock) {
  return std::make_unique<GrpcParentConnector>(options, clock);
}

}  // namespace muster
