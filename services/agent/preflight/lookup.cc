#include "services/agent/preflight/lookup.h"

#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/clock.h"

namespace muster {
namespace {

constexpr absl::Duration kSlice = absl::Milliseconds(200);

// The data of a query, which the resolver's thread reads and writes.
struct Question {
  std::string host;
  std::string port;
  addrinfo hints{};
  gaicb request{};

  ~Question() {
    if (request.ar_result != nullptr) ::freeaddrinfo(request.ar_result);
  }
};

// Cancels a query. If the resolver cannot cancel it, its data is leaked, because the resolver may
// still use it.
void Abandon(std::unique_ptr<Question> question) {
  if (::gai_cancel(&question->request) == EAI_NOTCANCELED) (void)question.release();
}

}  // namespace

absl::StatusOr<Addresses> LookUp(const std::string& host, uint16_t port, absl::Duration limit,
                                 const std::stop_token& stop) {
  auto question = std::make_unique<Question>();
  question->host = host;
  question->port = absl::StrCat(port);
  question->hints.ai_socktype = SOCK_STREAM;
  question->request.ar_name = question->host.c_str();
  question->request.ar_service = question->port.c_str();
  question->request.ar_request = &question->hints;
  gaicb* list[] = {&question->request};
  if (const int fault = ::getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr); fault != 0) {
    return absl::NotFoundError(::gai_strerror(fault));
  }
  const absl::Duration end = SystemClock().MonotonicNow() + limit;
  int state = EAI_INPROGRESS;
  while ((state = ::gai_error(&question->request)) == EAI_INPROGRESS) {
    if (stop.stop_requested() || SystemClock().MonotonicNow() >= end) {
      Abandon(std::move(question));
      if (stop.stop_requested()) return absl::CancelledError("the agent is stopping");
      return absl::DeadlineExceededError(
          absl::StrCat("no name server answered within ", absl::FormatDuration(limit)));
    }
    const gaicb* waited[] = {&question->request};
    const timespec slice = absl::ToTimespec(kSlice);
    ::gai_suspend(waited, 1, &slice);
  }
  if (state != 0) return absl::NotFoundError(::gai_strerror(state));
  return Addresses(std::exchange(question->request.ar_result, nullptr));
}

}  // namespace muster
