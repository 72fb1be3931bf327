#include "services/common/rpc/frame_guard.h"

#include <dlfcn.h>
#include <grpc/slice.h>

#include <atomic>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/strings.h"
#include "services/common/rpc/frame_meter.h"

// A type of gRPC, whose headers are not installed.
struct grpc_chttp2_transport;

namespace muster {
namespace {

using Read = absl::Status (*)(grpc_chttp2_transport*, const grpc_slice&);
using Destroy = void (*)(grpc_chttp2_transport*);

constexpr char kRead[] = "_Z24grpc_chttp2_perform_readP21grpc_chttp2_transportRK10grpc_slice";
constexpr char kDestroy[] = "_ZN21grpc_chttp2_transportD1Ev";

// Never destroyed: gRPC's threads may read to the end.
class Connections {
 public:
  static Connections& Get() {
    static auto* const connections = new Connections;
    return *connections;
  }

  bool complete() const { return read_ != nullptr && destroy_ != nullptr; }
  void Limit() { limited_ = true; }
  size_t Drain() { return closed_.exchange(0); }

  // gRPC reads each connection in one thread at a time, and destroys it after that.
  absl::Status ReadSlice(grpc_chttp2_transport* connection, const grpc_slice& slice) {
    if (limited_) {
      const std::string_view bytes(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)),
                                   GRPC_SLICE_LENGTH(slice));
      const std::string_view excess = MeterOf(connection).Read(bytes, SystemClock().MonotonicNow());
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
      meters_.erase(connection);
    }
    destroy_(connection);
  }

 private:
  FrameMeter& MeterOf(const grpc_chttp2_transport* connection) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    std::unique_ptr<FrameMeter>& meter = meters_[connection];
    if (meter == nullptr) meter = std::make_unique<FrameMeter>();
    return *meter;
  }

  const Read read_ = reinterpret_cast<Read>(dlsym(RTLD_NEXT, kRead));
  const Destroy destroy_ = reinterpret_cast<Destroy>(dlsym(RTLD_NEXT, kDestroy));
  std::atomic<bool> limited_ = false;
  std::atomic<size_t> closed_ = 0;
  Mutex mutex_;
  absl::flat_hash_map<const grpc_chttp2_transport*, std::unique_ptr<FrameMeter>> meters_
      ABSL_GUARDED_BY(mutex_);
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

size_t DrainFloodedConnections() { return Connections::Get().Drain(); }

}  // namespace muster

// These take precedence over the functions of gRPC's library, also for the library itself.
__attribute__((visibility("default"))) absl::Status grpc_chttp2_perform_read(
    grpc_chttp2_transport* connection, const grpc_slice& slice) {
  return muster::Connections::Get().ReadSlice(connection, slice);
}

extern "C" __attribute__((visibility("default"))) void MusterEndConnection(
    grpc_chttp2_transport* connection) __asm__("_ZN21grpc_chttp2_transportD1Ev");

void MusterEndConnection(grpc_chttp2_transport* connection) {
  muster::Connections::Get().End(connection);
}
