#include "services/common/rpc/frame_guard.h"

#include <dlfcn.h>
#include <grpc/slice.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/strings.h"
#include "services/common/rpc/call_backlog.h"
#include "services/common/rpc/frame_meter.h"

// Types and functions of gRPC, whose headers are not installed. A grpc_chttp2_transport begins with
// its grpc_transport.
struct grpc_chttp2_transport;
struct grpc_chttp2_stream;
struct grpc_endpoint;
struct grpc_transport;
grpc_endpoint* grpc_transport_get_endpoint(grpc_transport* transport);
absl::string_view grpc_endpoint_get_peer(grpc_endpoint* endpoint);

namespace muster {
namespace {

using Read = absl::Status (*)(grpc_chttp2_transport*, const grpc_slice&);
using Destroy = void (*)(grpc_chttp2_transport*);
// The constructor: the connection, the count of references, the server's data, the arena.
using BeginStream = void (*)(grpc_chttp2_stream*, grpc_chttp2_transport*, void*, const void*,
                             void*);
using EndStream = void (*)(grpc_chttp2_stream*);

constexpr char kRead[] = "_Z24grpc_chttp2_perform_readP21grpc_chttp2_transportRK10grpc_slice";
#define MUSTER_DESTROY "_ZN21grpc_chttp2_transportD1Ev"
#define MUSTER_BEGIN_STREAM                                                      \
  "_ZN18grpc_chttp2_streamC1EP21grpc_chttp2_transportP20grpc_stream_refcountPKv" \
  "PN9grpc_core5ArenaE"
#define MUSTER_END_STREAM "_ZN18grpc_chttp2_streamD1Ev"

// Never destroyed: gRPC's threads may read to the end.
class Connections {
 public:
  static Connections& Get() {
    static auto* const connections = new Connections;
    return *connections;
  }

  bool complete() const {
    return read_ != nullptr && destroy_ != nullptr && begin_stream_ != nullptr &&
           end_stream_ != nullptr;
  }
  void Limit() { limited_ = true; }
  size_t Drain() { return closed_.exchange(0); }

  // gRPC reads each connection in one thread at a time, and destroys it after that.
  absl::Status ReadSlice(grpc_chttp2_transport* connection, const grpc_slice& slice) {
    if (limited_) {
      const std::string_view bytes(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
                                   GRPC_SLICE_LENGTH(slice));
      const std::shared_ptr<Connection> known = Find(connection);
      std::string_view excess = known->meter.Read(bytes, SystemClock().MonotonicNow());
      const int begun = known->meter.TakeOpened();
      const int reset = known->meter.TakeReset();
      if (known->peer.empty()) known->peer = PeerOf(connection);
      const bool forwards = reset > 0 && IsForwarder(known->peer);
      if (excess.empty() && known->calls.IsExceeded(begun, reset, forwards)) excess = "calls";
      if (excess.empty() && known->meter.unfinished() > kMaxUnfinishedBytes &&
          !IsForwarder(known->peer)) {
        excess = "bytes of unfinished messages";
      }
      if (!excess.empty()) {
        ++closed_;
        return absl::ResourceExhaustedError(absl::StrCat("too many ", ToAbsl(excess)));
      }
    }
    return read_(connection, slice);
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
      Streams& streams = StreamsLike(stream);
      MutexLock lock(streams.mutex);
      // gRPC passes the number of the stream as the data of the server.
      const auto number = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(server));
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
    explicit Connection(CallBacklog::Total& total) : calls(total) {}
    std::string peer;  // its address
    FrameMeter meter;
    CallBacklog calls;
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

  std::shared_ptr<Connection> Find(const grpc_chttp2_transport* connection)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    std::shared_ptr<Connection>& known = connections_[connection];
    if (known == nullptr) known = std::make_shared<Connection>(reset_calls_);
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

  const Read read_ = reinterpret_cast<Read>(dlsym(RTLD_NEXT, kRead));
  const Destroy destroy_ = reinterpret_cast<Destroy>(dlsym(RTLD_NEXT, MUSTER_DESTROY));
  const BeginStream begin_stream_ =
      reinterpret_cast<BeginStream>(dlsym(RTLD_NEXT, MUSTER_BEGIN_STREAM));
  const EndStream end_stream_ = reinterpret_cast<EndStream>(dlsym(RTLD_NEXT, MUSTER_END_STREAM));
  std::atomic<bool> limited_ = false;
  std::atomic<size_t> closed_ = 0;
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

}  // namespace muster

// These take precedence over the functions of gRPC's library, also for the library itself.
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
