#include "services/agent/preflight/lookup.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/mutex.h"

namespace muster {
namespace {

// A query, which its thread and its caller share: getaddrinfo cannot be cancelled, so the thread
// may outlive the caller. The resolver's own time limits end it.
struct Query {
  Query(std::string host, uint16_t port) : host(std::move(host)), port(absl::StrCat(port)) {}

  const std::string host;
  const std::string port;
  Mutex mutex;
  StoppableCondVar answered;
  bool is_answered ABSL_GUARDED_BY(mutex) = false;
  int fault ABSL_GUARDED_BY(mutex) = 0;
  Addresses addresses ABSL_GUARDED_BY(mutex);

  void Ask() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int code = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
    MutexLock lock(mutex);
    fault = code;
    if (code == 0) addresses.reset(found);
    is_answered = true;
    answered.NotifyAll();
  }
};

}  // namespace

absl::StatusOr<Addresses> LookUp(const std::string& host, uint16_t port, absl::Duration limit,
                                 const std::stop_token& stop) {
  const auto query = std::make_shared<Query>(host, port);
  std::thread([query] { query->Ask(); }).detach();
  MutexLock lock(query->mutex);
  query->answered.WaitFor(
      query->mutex, stop, limit,
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(query->mutex) { return query->is_answered; });
  if (!query->is_answered) {
    if (stop.stop_requested()) return absl::CancelledError("the agent is stopping");
    return absl::DeadlineExceededError(
        absl::StrCat("no name server answered within ", absl::FormatDuration(limit)));
  }
  if (query->fault != 0) return absl::NotFoundError(::gai_strerror(query->fault));
  return std::move(query->addresses);
}

}  // namespace muster
