#include "services/common/rpc/accept_guard.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>

#include "services/common/base/mutex.h"

namespace muster {
namespace {

// Blocks a thread of gRPC for this time before it tries again, if nothing else can be done.
constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 10'000'000};

// Never destroyed: gRPC's threads may accept connections to the end.
class Reserve {
 public:
  static Reserve& Get() {
    static auto* const reserve = new Reserve;
    return *reserve;
  }

  void Fill() {
    MutexLock lock(mutex_);
    Open();
  }

  // Accepts and closes one connection with the descriptor in reserve. Returns the error for the
  // caller of accept4. EAGAIN: none waits, which Linux says only while a descriptor is free.
  int CloseOne(int listener) {
    {
      MutexLock lock(mutex_);
      if (Open()) {
        close(fd_);
        const int accepted = Accept(listener);
        const int error = errno;
        if (accepted >= 0) {
          close(accepted);
          ++closed_;
        }
        fd_ = -1;
        // Another thread may have taken the descriptor.
        const bool reserved = Open();
        if (accepted < 0 && (error == EAGAIN || error == EWOULDBLOCK)) return EAGAIN;
        if (accepted >= 0 && reserved) return EINTR;
      }
    }
    nanosleep(&kPause, nullptr);
    return EINTR;
  }

  size_t Drain() { return closed_.exchange(0); }

 private:
  static int Accept(int listener) {
    return static_cast<int>(
        syscall(SYS_accept4, listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }

  bool Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (fd_ < 0) fd_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd_ >= 0;
  }

  Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_) = -1;
  std::atomic<size_t> closed_ = 0;
};

}  // namespace

void GuardAccept() { Reserve::Get().Fill(); }

size_t DrainUnacceptedConnections() { return Reserve::Get().Drain(); }

size_t FileDescriptorLimit() {
  rlimit files = {};
  return getrlimit(RLIMIT_NOFILE, &files) == 0 ? static_cast<size_t>(files.rlim_cur) : 0;
}

}  // namespace muster

// Takes precedence over the function of the C library, also for gRPC's library.
extern "C" __attribute__((visibility("default"))) int accept4(int listener, sockaddr* address,
                                                              socklen_t* length, int flags) {
  const auto fd = static_cast<int>(syscall(SYS_accept4, listener, address, length, flags));
  if (fd >= 0) return fd;
  switch (errno) {
    case EMFILE:
    case ENFILE:
      errno = muster::Reserve::Get().CloseOne(listener);
      break;
    case ENOBUFS:
    case ENOMEM:
      nanosleep(&muster::kPause, nullptr);
      errno = EINTR;
      break;
    // The error of one connection, or the firewall refused it (accept(2)).
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case EPERM:
    case EPROTO:
      errno = EINTR;
      break;
    default:
      break;
  }
  return fd;
}
