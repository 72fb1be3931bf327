// A file descriptor with one owner.
#ifndef MUSTER_SERVICES_COMMON_BASE_UNIQUE_FD_H_
#define MUSTER_SERVICES_COMMON_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace muster {

// Closes its descriptor when it is destroyed. Not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    const int old = std::exchange(fd_, fd);
    if (old >= 0 && old != fd) ::close(old);
  }

 private:
  int fd_ = -1;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_UNIQUE_FD_H_
