#include "services/agent/collection/collection_runner.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/agent/agent.h"
#include "services/agent/agent_state.h"
#include "services/agent/collection/plugin_task.h"
#include "services/agent/plugin_source.h"
#include "services/client/client_status.h"
#include "services/common/base/backoff.h"
#include "services/common/base/error.h"
#include "services/common/base/log.h"
#include "services/common/base/names.h"
#include "services/common/errors/client.h"
#include "services/common/identity/identity.h"
#include "services/common/rpc/proto_time.h"

namespace muster {
namespace {

// When the fleet is asked for the ends of runs: after an attachment, when the relay has offered
// what it wants and can speak for the node, and after a failure.
constexpr absl::Duration kReviewDelay = absl::Minutes(1);
constexpr absl::Duration kReviewRetry = absl::Minutes(10);
// How soon kept results give way to a disk that becomes full.
constexpr absl::Duration kTrimPeriod = absl::Seconds(10);

void LogOutcome(const std::string& run, const std::string& plugin,
                const client::Delivery& delivery) {
  if (delivery.status.ok()) {
    Log(LogLevel::kInfo, "collected", {{"run", run}, {"plugin", plugin}});
  } else if (delivery.status.code == client::Code::kInterrupted) {
    Log(LogLevel::kInfo, "a collection was stopped", {{"run", run}, {"plugin", plugin}});
  } else {
    Log(LogLevel::kWarning, "a collection has no genuine result",
        {{"run", run},
         {"plugin", plugin},
         {"error", absl::StrCat(delivery.status.reason, ": ", delivery.status.message)}});
  }
}

// Returns whether a later attempt may succeed: the node moved to another relay, a stopped delivery
// has not ended yet, or the certificate or the relay's statement is not accepted. These are
// renewed, and the clock of one side may be wrong. A refusal before the call has its reason in the
// message.
bool IsTemporary(const client::Status& status) {
  if (status.reason == "NOT_ATTACHED" || status.reason == "ALREADY_RUNNING") return true;
  // By this clock the deadline has passed, or the certificate has ended.
  if (status.reason == "NOT_COMMITTED_IN_TIME") return true;
  if (status.reason == "INVALID_CONFIG") return status.message.starts_with("client_cert: ");
  const std::string reason =
      status.reason.empty() ? status.message.substr(0, status.message.find(':')) : status.reason;
  return reason == "IDENTITY_NOT_FORWARDABLE" || reason == "CERTIFICATE_EXPIRED" ||
         reason == "CERTIFICATE_NOT_YET_VALID";
}

// A run that does not exist (any more) is not planned for this node.
bool IsUnknownRun(std::string_view reason) {
  return reason == "RUN_NOT_FOUND" || reason == "PAIR_NOT_PLANNED";
}

bool AcceptsResults(v1::RunState state) {
  return state != v1::RUN_STATE_COMPLETE && state != v1::RUN_STATE_FAILED &&
         state != v1::RUN_STATE_CANCELLED;
}

}  // namespace

CollectionRunner::CollectionRunner(CollectionOptions options)
    : options_(std::move(options)),
      configs_({.node = options_.node,
                .identity_folder = options_.identity_folder,
                .relay_targets = options_.relay_targets,
                .state_folder = StateFolder()}),
      policy_(options_.folder + "/policy.yaml"),
      kept_(KeptOptions()),
      undelivered_({.state_dir = StateFolder(),
                    .node = options_.node,
                    .max_results = options_.max_undelivered,
                    .max_bytes = options_.max_undelivered_bytes,
                    .clock = options_.clock}),
      removal_(*options_.timers, *options_.executor,
               [this] {
                 MutexLock lock(mutex_);
                 RemoveDue();
               }),
      review_(*options_.timers, *options_.executor, [this] { Review(); }),
      trim_(*options_.timers, *options_.executor,
            [this] {
              kept_.Trim();
              trim_.RunAfter(kTrimPeriod);
            }),
      redeliveries_(Redelivery()) {
  // The relay may not offer these collections again.
  EndOrphanedPlugins(StateFolder());
  {
    MutexLock lock(mutex_);
    RemoveDue();
  }
  trim_.RunAfter(kTrimPeriod);
  for (size_t i = 0; i < options_.max_parallel; ++i) {
    threads_.emplace_back([this] { Work(); });
  }
}

CollectionRunner::~CollectionRunner() { Stop(); }

void CollectionRunner::Offer(const v1::CollectionOffer& offer, const std::string& relay_target) {
  if (!IsRunId(offer.run())) return;
  if (std::ranges::find(offer.nodes(), options_.node) == offer.nodes().end()) return;
  MutexLock lock(mutex_);
  configs_.SetTarget(relay_target);
  if (offer.redelivery()) return redeliveries_.Request(offer);
  for (const v1::CollectionOffer::Plugin& plugin : offer.plugins()) {
    const Key key{offer.run(), plugin.name()};
    const auto present = present_.find(key);
    const bool under_way = present != present_.end() && !present->second->stop.stop_requested();
    if (under_way) present->second->offered = attachments_;
    const auto finished = finished_.find(key);
    const bool is_repeated = finished != finished_.end() && finished->second == attachments_;
    if (!ValidateName("plugin", plugin.name()).ok() || under_way || is_repeated || stopping_) {
      continue;
    }
    const size_t bytes = plugin.definition_yaml().size();
    if (waiting_.size() >= options_.max_waiting ||
        waiting_bytes_ + bytes > options_.max_waiting_bytes) {
      LogLimited(LogLevel::kWarning, "the queue of collections is full", "",
                 {{"run", key.run}, {"plugin", key.plugin}});
      continue;
    }
    auto task = std::make_shared<Task>();
    task->key = key;
    task->definition_yaml = plugin.definition_yaml();
    task->offered = attachments_;
    task->deadline = offer.has_deadline() ? FromProto(offer.deadline()) : absl::InfiniteFuture();
    present_[key] = task;
    undelivered_.HandleOffer(key);
    waiting_bytes_ += bytes;
    waiting_.push_back(std::move(task));
    work_.NotifyOne();
  }
}

void CollectionRunner::OnAttached(const std::string& relay_target) {
  redeliveries_.OnAttached();
  MutexLock lock(mutex_);
  configs_.SetTarget(relay_target);
  ++attachments_;
  DropWaiting(std::nullopt);
  PlanReview(kReviewDelay);
}

void CollectionRunner::DropWaiting(const std::optional<std::string>& run) {
  std::erase_if(waiting_, [&](const auto& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (run && task->key.run != *run) return false;
    waiting_bytes_ -= task->definition_yaml.size();
    present_.erase(task->key);
    return true;
  });
}

void CollectionRunner::End(const v1::CollectionEnded& ended) {
  const auto& nodes = ended.nodes();
  if (!nodes.empty() && std::ranges::find(nodes, options_.node) == nodes.end()) return;
  kept_.HandleEnd(ended.run());
  MutexLock lock(mutex_);
  DropWaiting(ended.run());
  std::erase_if(finished_, [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Key& key = entry.first;
    if (key.run != ended.run()) return false;
    if (!present_.contains(key) && !undelivered_.Update(key)) {
      RemoveState(StateFolder(), key.run, key.plugin, options_.node);
    }
    return true;
  });
  undelivered_.HandleEnd(ended.run());
  RemoveDue();
  for (const auto& [key, task] : present_) {
    if (key.run != ended.run()) continue;
    ended_.insert(task.get());
    task->stop.request_stop();
  }
}

void CollectionRunner::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    for (const auto& [key, task] : present_) task->stop.request_stop();
  }
  work_.NotifyAll();
  stop_review_.request_stop();
  removal_.Stop();
  review_.Stop();
  trim_.Stop();
  redeliveries_.Stop();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void CollectionRunner::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    auto ready = FindReady();
    while (!stopping_ && ready == waiting_.end()) {
      work_.Wait(mutex_);
      ready = FindReady();
    }
    if (stopping_) return;
    const std::shared_ptr<Task> task = std::move(*ready);
    waiting_.erase(ready);
    waiting_bytes_ -= task->definition_yaml.size();
    client::Delivery delivery;
    uint64_t offered = 0;
    do {
      offered = task->offered;
      lock.Unlock();
      delivery = RunTask(*task);
      LogOutcome(task->key.run, task->key.plugin, delivery);
      if (options_.on_worked) options_.on_worked(task->key.plugin);
      lock.Lock();
      // The next relay offered the collection meanwhile: the previous one may have lied about the
      // outcome, and the next one does not repeat its offer.
    } while (task->offered != offered && !task->stop.stop_requested());
    Forget(*task, delivery.status);
  }
}

client::Delivery CollectionRunner::RunTask(const Task& task) {
  Backoff backoff;
  for (;;) {
    client::Delivery delivery = Gather(task);
    // The end of the run stops the attempts, not its deadline: late results are accepted until the
    // run is sealed.
    if (!IsTemporary(delivery.status)) return delivery;
    if (!WaitFor(backoff.Next(absl::Seconds(1)), task.stop.get_token())) {
      return {client::ToClientStatus(errors::Interrupted()), {}};
    }
  }
}

// Removes a task in one step with its use of `ended_`: a later task may have the same address.
void CollectionRunner::Forget(const Task& task, const client::Status& outcome) {
  const bool may_run_again =
      outcome.code == client::Code::kInterrupted || outcome.code == client::Code::kFailed;
  const auto present = present_.find(task.key);
  const bool is_newest = present == present_.end() || present->second.get() == &task;
  const bool run_ended = ended_.erase(&task) > 0;
  if (!run_ended && !may_run_again &&
      (finished_.contains(task.key) || finished_.size() < options_.max_finished)) {
    finished_.insert_or_assign(task.key, task.offered);
  }
  // A newer offer of the same plugin uses the same state.
  if (!is_newest) return;
  present_.erase(task.key);
  const bool undelivered = undelivered_.Update(task.key);
  // A run that was deleted, or that a relay made up: no message says when it ends.
  if (run_ended || IsUnknownRun(outcome.reason)) {
    if (undelivered) {
      undelivered_.HandleEnd(task.key);
    } else {
      RemoveState(StateFolder(), task.key.run, task.key.plugin, options_.node);
    }
  }
  RemoveDue();
}

std::deque<std::shared_ptr<CollectionRunner::Task>>::iterator CollectionRunner::FindReady() {
  if (!undelivered_.IsFull()) return waiting_.begin();
  const auto ready =
      std::ranges::find_if(waiting_, [&](const auto& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return undelivered_.Contains(task->key);
      });
  if (ready == waiting_.end() && !waiting_.empty()) {
    LogLimited(LogLevel::kWarning, "collections wait: the undelivered results are at their limit",
               "", {{"run", waiting_.front()->key.run}, {"plugin", waiting_.front()->key.plugin}});
  }
  return ready;
}

void CollectionRunner::RemoveDue() {
  const auto in_use = [&](const Key& key)
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return present_.contains(key); };
  undelivered_.RemoveDue(in_use);
  const absl::Duration next = undelivered_.UntilNextRemoval(in_use);
  if (next < absl::InfiniteDuration()) removal_.RunAfter(next);
  if (!undelivered_.IsFull()) {
    work_.NotifyAll();
  } else if (!review_planned_) {
    PlanReview(kReviewRetry);
  }
}

void CollectionRunner::PlanReview(absl::Duration delay) {
  review_planned_ = true;
  review_.RunAfter(delay);
}

void CollectionRunner::Review() {
  std::set<std::string> runs;
  {
    MutexLock lock(mutex_);
    review_planned_ = false;
    runs = undelivered_.OpenRuns([&](const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return present_.contains(key);
    });
  }
  bool complete = true;
  for (const std::string& run : runs) {
    const auto state = FetchRunState(configs_.ConfigOf({run, ""}, absl::InfiniteFuture()),
                                     stop_review_.get_token());
    if (stop_review_.stop_requested()) return;
    const bool answered = state.ok() || IsUnknownRun(ReasonOf(state.status()));
    complete = complete && answered;
    // The parent, or a service behind it, does not answer the other questions either.
    if (absl::IsUnavailable(state.status()) || absl::IsDeadlineExceeded(state.status())) break;
    if (!answered || (state.ok() && AcceptsResults(*state))) continue;
    MutexLock lock(mutex_);
    undelivered_.HandleEnd(run);
    RemoveDue();
  }
  MutexLock lock(mutex_);
  if (!complete || undelivered_.IsFull()) PlanReview(kReviewRetry);
}

client::Delivery CollectionRunner::Gather(const Task& task) {
  const std::stop_token stop = task.stop.get_token();
  auto config =
      PlanPlugin(configs_.ConfigOf(task.key, task.deadline), task.definition_yaml, policy_);
  if (config.ok()) {
    config->kept = &kept_;
    return GatherAndDeliver(*std::move(config), stop);
  }
  if (ReasonOf(config.status()) == "NOT_FOR_AGENTS") {
    return {client::ToClientStatus(config.status()), {}};
  }
  client::Status ready;
  const auto client = client::Client::Create(configs_.ConfigOf(task.key, task.deadline), &ready);
  if (!client) return {ready, {}};
  return client->SubmitError(
      absl::StrCat(ReasonOf(config.status()), ": ", config.status().message(), "\n",
                   NextStepOf(config.status())),
      stop);
}

KeptResultsOptions CollectionRunner::KeptOptions() const {
  return {.folder = options_.folder + "/kept",
          .node = options_.node,
          .max_bytes = options_.max_kept_bytes,
          .max_age = options_.max_kept_age,
          .clock = options_.clock,
          .is_committed = [this](const ResultName& name) {
            return IsCommitted(StateFolder(), name.run, name.plugin, options_.node);
          }};
}

RedeliveryOptions CollectionRunner::Redelivery() {
  return {.kept = &kept_, .clock = options_.clock, .config = [this](const ResultName& name) {
            return configs_.ConfigOf(name, absl::InfiniteFuture());
          }};
}

std::string CollectionRunner::StateFolder() const { return options_.folder + "/collections"; }

}  // namespace muster
