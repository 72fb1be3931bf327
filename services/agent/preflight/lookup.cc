#include "services/agent/preflight/lookup.h"

#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/mutex.h"

namespace muster {
namespace {

// A resolver that does not answer, such as one of a lost network file system, keeps its threads.
constexpr int kMaxThreads = 16;
std::atomic<int> threads = 0;

// A query, which its thread and its caller share: getaddrinfo cannot be cancelled, so the thread
// may outlive the caller. The resolver's own time limits end it.
struct Query {
  Query(std::string host, uint16_t port) : host(std::move(host)), port(absl::StrCat(port)) {}

  const std::string host;
  const std::string port;
  Mutex mutex;
  StoppableCondVar answered;
  bool is_answered ABSL_GUARDED_BY(mutex) = false;
  std::string fault ABSL_GUARDED_BY(mutex);
  Addresses addresses ABSL_GUARDED_BY(mutex);

  void Ask() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int code = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
    const int system = errno;
    --threads;
    MutexLock lock(mutex);
    if (code == 0) {
      addresses.reset(found);
    } else {
      fault = code == EAI_SYSTEM ? std::generic_category().message(system) : ::gai_strerror(code);
    }
    is_answered = true;
    answered.NotifyAll();
  }
};

}  // namespace

absl::StatusOr<Addresses> LookUp(const std::string& host, uint16_t port, absl::Duration limit,
                                 const std::stop_token& stop) {
  if (threads.fetch_add(1) >= kMaxThreads) {
    --threads;
    return absl::DeadlineExceededError("earlier queries to the name servers have no answer");
  }
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
  if (query->addresses == nullptr) return absl::NotFoundError(query->fault);
  return std::move(query->addresses);
}

}  // namespace muster
