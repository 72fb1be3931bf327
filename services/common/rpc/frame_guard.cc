#include "services/common/rpc/frame_guard.h"

#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/strings.h"
#include "services/common/errors/rpc.h"
#include "services/common/rpc/call_backlog.h"
#include "services/common/rpc/connection_limits.h"
#include "services/common/rpc/frame_meter.h"
#include "services/common/rpc/refusal_text.h"

// Types and functions of gRPC, whose headers are not installed. A grpc_chttp2_transport begins with
// its grpc_transport.
struct grpc_chttp2_transport;
struct grpc_chttp2_stream;
struct grpc_endpoint;
struct grpc_transport;
grpc_endpoint* grpc_transport_get_endpoint(grpc_transport* transport);
absl::string_view grpc_endpoint_get_peer(grpc_endpoint* endpoint);
// Ends a call of a server with the status of the error.
void grpc_chttp2_cancel_stream(grpc_chttp2_transport* connection, grpc_chttp2_stream* stream,
                               absl::Status error);

namespace grpc_core {

// The settings of a listener, and the objects that belong to a connection.
class ChannelArgs {
 public:
  ChannelArgs(const ChannelArgs& other);
  ~ChannelArgs();
  absl::optional<int> GetInt(absl::string_view name) const;
  void* GetVoidPointer(absl::string_view name) const;
  ChannelArgs Set(absl::string_view name, int value) const;

 private:
  void* root_[2];  // a std::shared_ptr
};

enum class StatusIntProperty { kRpcStatus = 3 };
enum class StatusStrProperty { kGrpcMessage = 5 };
void StatusSetInt(absl::Status* status, StatusIntProperty property, intptr_t value);
void StatusSetStr(absl::Status* status, StatusStrProperty property, absl::string_view value);

}  // namespace grpc_core

namespace muster {
namespace {

// The settings of the listener, the connection's bytes, whether it is of a client.
using Create = grpc_transport* (*)(const grpc_core::ChannelArgs&, grpc_endpoint*, bool);
using Read = absl::Status (*)(grpc_chttp2_transport*, const grpc_slice&);
using Destroy = void (*)(grpc_chttp2_transport*);
// The constructor: the connection, the count of references, the server's data, the arena.
using BeginStream = void (*)(grpc_chttp2_stream*, grpc_chttp2_transport*, void*, const void*,
                             void*);
using EndStream = void (*)(grpc_chttp2_stream*);

constexpr char kCreate[] =
    "_Z28grpc_create_chttp2_transportRKN9grpc_core11ChannelArgsEP13grpc_endpointb";
constexpr char kRead[] = "_Z24grpc_chttp2_perform_readP21grpc_chttp2_transportRK10grpc_slice";
#define MUSTER_DESTROY "_ZN21grpc_chttp2_transportD1Ev"
#define MUSTER_BEGIN_STREAM                                                      \
  "_ZN18grpc_chttp2_streamC1EP21grpc_chttp2_transportP20grpc_stream_refcountPKv" \
  "PN9grpc_core5ArenaE"
#define MUSTER_END_STREAM "_ZN18grpc_chttp2_streamD1Ev"

constexpr char kAuthContext[] = "grpc.auth_context";

// Returns the URI in the certificate of the peer; nothing without a certificate.
std::optional<std::string> UriOf(const grpc_core::ChannelArgs& args) {
  const auto* const context =
      static_cast<const grpc_auth_context*>(args.GetVoidPointer(kAuthContext));
  if (context == nullptr || grpc_auth_context_peer_is_authenticated(context) == 0) {
    return std::nullopt;
  }
  grpc_auth_property_iterator uris =
      grpc_auth_context_find_properties_by_name(context, GRPC_PEER_URI_PROPERTY_NAME);
  const grpc_auth_property* const uri = grpc_auth_property_iterator_next(&uris);
  return uri == nullptr ? "" : std::string(uri->value, uri->value_length);
}

// Returns the limits of a connection: those of its listener, or those of its role if they are
// smaller.
ConnectionLimits LimitsOf(const grpc_core::ChannelArgs& args) {
  constexpr int kNone = std::numeric_limits<int>::max();
  ConnectionLimits limits = {kNone, kNone};
  if (const auto uri = UriOf(args)) limits = ConnectionLimitsOf(*uri);
  const auto bound = [&args](const char* name, int limit) {
    const int of_listener = args.GetInt(name).value_or(-1);
    return of_listener < 0 ? limit : std::min(limit, of_listener);
  };
  return {bound(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, limits.message_bytes),
          bound(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.streams)};
}

// Never destroyed: gRPC's threads may read to the end.
class Connections {
 public:
  static Connections& Get() {
    static auto* const connections = new Connections;
    return *connections;
  }

  bool complete() const {
    return create_ != nullptr && read_ != nullptr && destroy_ != nullptr &&
           begin_stream_ != nullptr && end_stream_ != nullptr;
  }
  void Limit() { limited_ = true; }
  size_t Drain() { return closed_.exchange(0); }
  size_t DrainRefusedMessages() { return refused_messages_.exchange(0); }

  grpc_transport* Begin(const grpc_core::ChannelArgs& args, grpc_endpoint* endpoint, bool is_client)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!limited_ || is_client) return create_(args, endpoint, is_client);
    const ConnectionLimits limits = LimitsOf(args);
    grpc_transport* const transport =
        create_(args.Set(GRPC_ARG_MAX_CONCURRENT_STREAMS, limits.streams), endpoint, is_client);
    // gRPC reads no bytes before this function returns.
    MutexLock lock(mutex_);
    connections_[reinterpret_cast<grpc_chttp2_transport*>(transport)] =
        std::make_shared<Connection>(reset_calls_, limits);
    return transport;
  }

  // gRPC reads each connection in one thread at a time, and destroys it after that.
  absl::Status ReadSlice(grpc_chttp2_transport* connection, const grpc_slice& slice) {
    if (!limited_) return read_(connection, slice);
    const std::shared_ptr<Connection> known = Find(connection);
    const std::string_view bytes(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
                                 GRPC_SLICE_LENGTH(slice));
    if (const std::string_view excess = Count(connection, *known, bytes); !excess.empty()) {
      ++closed_;
      return absl::ResourceExhaustedError(absl::StrCat("too many ", ToAbsl(excess)));
    }
    absl::Status status = read_(connection, slice);
    // Their streams may have begun with these bytes.
    for (const MessageMeter::TooLarge& message : known->meter.TakeTooLarge()) {
      if (status.ok()) Refuse(connection, *known, message);
    }
    return status;
  }

  void End(grpc_chttp2_transport* connection) {
    {
      MutexLock lock(mutex_);
      const auto known = connections_.find(connection);
      if (known != connections_.end()) {
        forwarders_.erase(known->second->peer);
        connections_.erase(known);
      }
    }
    destroy_(connection);
  }

  void Begin(grpc_chttp2_stream* stream, grpc_chttp2_transport* connection, void* references,
             const void* server, void* arena) {
    // Streams of clients have no data of a server.
    if (limited_ && server != nullptr) {
      std::shared_ptr<Connection> known = Find(connection);
      known->calls.Add();
      // gRPC passes the number of the stream as the data of the server.
      const auto number = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(server));
      {
        MutexLock lock(known->mutex);
        known->streams[number] = stream;
      }
      Streams& streams = StreamsLike(stream);
      MutexLock lock(streams.mutex);
      streams.calls[stream] = {std::move(known), number};
    }
    begin_stream_(stream, connection, references, server, arena);
  }

  void End(grpc_chttp2_stream* stream) {
    end_stream_(stream);
    Streams& streams = StreamsLike(stream);
    Call call;
    {
      MutexLock lock(streams.mutex);
      const auto found = streams.calls.find(stream);
      if (found == streams.calls.end()) return;
      call = std::move(found->second);
      streams.calls.erase(found);
    }
    {
      MutexLock lock(call.connection->mutex);
      call.connection->streams.erase(call.number);
    }
    call.connection->meter.EndStream(call.number);
    call.connection->calls.Remove();
  }

  void MarkForwarder(const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    if (forwarders_.size() < kMaxForwarders) forwarders_.insert(peer);
  }

 private:
  // More than relays and services that one process serves.
  static constexpr size_t kMaxForwarders = 100'000;

  struct Connection {
    Connection(CallBacklog::Total& total, const ConnectionLimits& given)
        : limits(given), meter(static_cast<uint64_t>(given.message_bytes)), calls(total) {}
    const ConnectionLimits limits;
    std::string peer;  // its address
    FrameMeter meter;
    CallBacklog calls;
    Mutex mutex;
    absl::flat_hash_map<uint32_t, grpc_chttp2_stream*> streams ABSL_GUARDED_BY(mutex);
  };

  struct Call {
    std::shared_ptr<Connection> connection;
    uint32_t number = 0;  // of its stream
  };

  // Several, because each call takes its lock twice.
  struct Streams {
    Mutex mutex;
    absl::flat_hash_map<const grpc_chttp2_stream*, Call> calls ABSL_GUARDED_BY(mutex);
  };

  // Returns an empty text, or what there is too much of.
  std::string_view Count(grpc_chttp2_transport* connection, Connection& known,
                         std::string_view bytes) {
    const std::string_view excess = known.meter.Read(bytes, SystemClock().MonotonicNow());
    const int begun = known.meter.TakeOpened();
    const int reset = known.meter.TakeReset();
    if (known.peer.empty()) known.peer = PeerOf(connection);
    const bool forwards = reset > 0 && IsForwarder(known.peer);
    if (!excess.empty()) return excess;
    if (known.calls.IsExceeded(begun, reset, forwards)) return "calls";
    if (known.meter.unfinished() > kMaxUnfinishedBytes && !IsForwarder(known.peer)) {
      return "bytes of unfinished messages";
    }
    return "";
  }

  // gRPC ends streams in the thread that reads, so the stream exists for as long as this runs.
  void Refuse(grpc_chttp2_transport* connection, Connection& known,
              const MessageMeter::TooLarge& message) {
    grpc_chttp2_stream* stream = nullptr;
    {
      MutexLock lock(known.mutex);
      const auto found = known.streams.find(message.stream);
      if (found == known.streams.end()) return;
      stream = found->second;
    }
    ++refused_messages_;
    const absl::Status error =
        errors::MessageTooLarge(static_cast<int64_t>(message.bytes), known.limits.message_bytes);
    absl::Status status(error.code(), error.message());
    grpc_core::StatusSetInt(&status, grpc_core::StatusIntProperty::kRpcStatus,
                            static_cast<intptr_t>(error.code()));
    grpc_core::StatusSetStr(&status, grpc_core::StatusStrProperty::kGrpcMessage,
                            RefusalText(error));
    grpc_chttp2_cancel_stream(connection, stream, std::move(status));
  }

  std::shared_ptr<Connection> Find(const grpc_chttp2_transport* connection)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    std::shared_ptr<Connection>& known = connections_[connection];
    if (known == nullptr) {  // it began before the limits
      constexpr int kNone = std::numeric_limits<int>::max();
      known = std::make_shared<Connection>(reset_calls_, ConnectionLimits{kNone, kNone});
    }
    return known;
  }

  static std::string PeerOf(grpc_chttp2_transport* connection) {
    auto* const transport = reinterpret_cast<grpc_transport*>(connection);
    grpc_endpoint* const endpoint = grpc_transport_get_endpoint(transport);
    return endpoint == nullptr ? "" : std::string(grpc_endpoint_get_peer(endpoint));
  }

  bool IsForwarder(const std::string& peer) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return forwarders_.contains(peer);
  }

  Streams& StreamsLike(const grpc_chttp2_stream* stream) {
    return streams_[absl::Hash<const void*>()(stream) % streams_.size()];
  }

  const Create create_ = reinterpret_cast<Create>(dlsym(RTLD_NEXT, kCreate));
  const Read read_ = reinterpret_cast<Read>(dlsym(RTLD_NEXT, kRead));
  const Destroy destroy_ = reinterpret_cast<Destroy>(dlsym(RTLD_NEXT, MUSTER_DESTROY));
  const BeginStream begin_stream_ =
      reinterpret_cast<BeginStream>(dlsym(RTLD_NEXT, MUSTER_BEGIN_STREAM));
  const EndStream end_stream_ = reinterpret_cast<EndStream>(dlsym(RTLD_NEXT, MUSTER_END_STREAM));
  std::atomic<bool> limited_ = false;
  std::atomic<size_t> closed_ = 0;
  std::atomic<size_t> refused_messages_ = 0;
  CallBacklog::Total reset_calls_ = 0;
  std::array<Streams, 16> streams_;
  Mutex mutex_;
  absl::flat_hash_map<const grpc_chttp2_transport*, std::shared_ptr<Connection>> connections_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<std::string> forwarders_ ABSL_GUARDED_BY(mutex_);  // by peer
};

}  // namespace

absl::Status GuardFrames() {
  Connections& connections = Connections::Get();
  if (!connections.complete()) {
    return absl::InternalError("gRPC lacks functions of version 1.51 that read connections");
  }
  connections.Limit();
  return absl::OkStatus();
}

void MarkForwarder(const std::string& peer) { Connections::Get().MarkForwarder(peer); }

size_t DrainFloodedConnections() { return Connections::Get().Drain(); }

size_t DrainRefusedMessages() { return Connections::Get().DrainRefusedMessages(); }

}  // namespace muster

// These take precedence over the functions of gRPC's library, also for the library itself.
__attribute__((visibility("default"))) grpc_transport* grpc_create_chttp2_transport(
    const grpc_core::ChannelArgs& args, grpc_endpoint* endpoint, bool is_client) {
  return muster::Connections::Get().Begin(args, endpoint, is_client);
}

__attribute__((visibility("default"))) absl::Status grpc_chttp2_perform_read(
    grpc_chttp2_transport* connection, const grpc_slice& slice) {
  return muster::Connections::Get().ReadSlice(connection, slice);
}

extern "C" {

__attribute__((visibility("default"))) void MusterEndConnection(
    grpc_chttp2_transport* connection) __asm__(MUSTER_DESTROY);
__attribute__((visibility("default"))) void MusterBeginStream(
    grpc_chttp2_stream* stream, grpc_chttp2_transport* connection, void* references,
    const void* server, void* arena) __asm__(MUSTER_BEGIN_STREAM);
__attribute__((visibility("default"))) void MusterEndStream(grpc_chttp2_stream* stream) __asm__(
    MUSTER_END_STREAM);

void MusterEndConnection(grpc_chttp2_transport* connection) {
  muster::Connections::Get().End(connection);
}

void MusterBeginStream(grpc_chttp2_stream* stream, grpc_chttp2_transport* connection,
                       void* references, const void* server, void* arena) {
  muster::Connections::Get().Begin(stream, connection, references, server, arena);
}

void MusterEndStream(grpc_chttp2_stream* stream) { muster::Connections::Get().End(stream); }

}  // extern "C"
