// The view of a run that a caller gets.
#ifndef MUSTER_SERVICES_AGGREGATOR_RUN_VIEW_H_
#define MUSTER_SERVICES_AGGREGATOR_RUN_VIEW_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/v1/runs.pb.h"
#include "services/aggregator/changes/change_dispatcher.h"
#include "services/common/identity/rpc_authorization.h"
#include "services/common/rpc/answer_memory.h"
#include "services/common/rpc/call.h"
#include "services/common/rpc/stream.h"
#include "services/common/store/state_store.h"

namespace muster {

// Returns a run as the caller may see it: a credential for one plugin needs no other.
v1::Run ShownTo(const Caller& caller, RunRecord run);

// Sends the run now and after each change until it has ended. Definitions may take megabytes and
// never change, so deliverers get them in the first message only.
class RunWatch : public StreamSource<v1::Run> {
 public:
  // The call outlives the calls of Next.
  RunWatch(StateStore& store, const Call& call, std::string run, ChangeDispatcher::Handle watch)
      : store_(store), call_(call), run_(std::move(run)), watch_(std::move(watch)) {}

  absl::StatusOr<Pull> Next(v1::Run* run) override;

 private:
  StateStore& store_;
  const Call& call_;
  const std::string run_;
  const ChangeDispatcher::Handle watch_;
  AnswerMemory::Ticket unread_;
  int64_t last_change_ = -1;
  bool ended_ = false;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_AGGREGATOR_RUN_VIEW_H_
