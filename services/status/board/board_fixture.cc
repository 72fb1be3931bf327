#include "services/status/board/board_fixture.h"

namespace muster::testing {

BoardFixture::BoardFixture()
    : board_(
          {&clock_, &hub_, &verdicts_, [this] { return doubt_; }, [this] { return lost_relays_; },
           [this](const std::string& node, const v1::NodeEvent& event) {
             events_.emplace_back(node, event);
           },
           [this](const std::string& run) { gone_.push_back(run); },
           [this](const std::set<std::string>& runs) { known_ = runs; },
           [this](const std::shared_ptr<const Sender>& sender) { done_.push_back(sender->node()); },
           [this](const std::string& run, const EndedRuns::Add& add, const EndedRuns::Done& done) {
             reads_.push_back({run, add, done});
           },
           [this](const std::string& run) { restored_.push_back(run); }}) {
  // Monotonic time of a machine that runs for a while.
  clock_.Advance(absl::Hours(1));
}

void BoardFixture::Begin() {
  Event event;
  event.mutable_snapshot_begin();
  board_.Apply(event);
}

void BoardFixture::End() {
  Event event;
  event.mutable_snapshot_end();
  board_.Apply(event);
}

v1::Run BoardFixture::MakeRun(const std::string& id, v1::RunState state) {
  v1::Run run;
  run.set_id(id);
  run.set_state(state);
  *run.mutable_create_time() = ToTimestamp(clock_.Now());
  *run.mutable_deadline() = ToTimestamp(clock_.Now() + absl::Hours(6));
  run.mutable_lost_after()->set_seconds(180);
  run.add_plugins()->set_name("facts");
  return run;
}

void BoardFixture::SetRun(const v1::Run& run) {
  Event event;
  *event.mutable_run() = run;
  board_.Apply(event);
}

void BoardFixture::DeleteRun(const std::string& id) {
  Event event;
  event.mutable_run_deleted()->set_run(id);
  board_.Apply(event);
}

void BoardFixture::SetPair(const std::string& node, v1::Outcome outcome, int64_t generation,
                           const std::string& plugin, const std::string& run) {
  Event event;
  event.mutable_pairs()->set_run(run);
  event.mutable_pairs()->set_plugin(plugin);
  auto* pair = event.mutable_pairs()->add_pairs();
  pair->set_node(node);
  pair->set_outcome(outcome);
  pair->set_generation(generation);
  board_.Apply(event);
}

void BoardFixture::Start(const std::vector<std::string>& nodes) { Start(MakeRun(), nodes); }

void BoardFixture::Start(const v1::Run& run, const std::vector<std::string>& nodes) {
  Begin();
  SetRun(run);
  for (const std::string& node : nodes) SetPair(node, v1::OUTCOME_PENDING, 0, "facts", run.id());
  End();
}

v1::ResultKey BoardFixture::Key(const std::string& node, const std::string& plugin,
                                const std::string& run) {
  v1::ResultKey key;
  key.set_run(run);
  key.set_plugin(plugin);
  key.set_node(node);
  return key;
}

std::shared_ptr<Sender> BoardFixture::Online(const std::string& node) {
  auto sender = std::make_shared<Sender>("spiffe://fleet/node/" + node, node);
  sender->set_presence(v1::PRESENCE_ONLINE, clock_.MonotonicNow());
  sender->set_last_seen(clock_.MonotonicNow());
  return sender;
}

void BoardFixture::Silence(const std::shared_ptr<Sender>& sender, v1::Presence presence,
                           Evidence evidence) {
  sender->set_evidence(evidence);
  sender->set_presence(presence, clock_.MonotonicNow());
  board_.PresenceChanged(sender);
}

void BoardFixture::Return(const std::shared_ptr<Sender>& sender) {
  sender->set_last_seen(clock_.MonotonicNow());
  Silence(sender, v1::PRESENCE_ONLINE, Evidence::kNone);
}

absl::Status BoardFixture::SendHeartbeat(const std::shared_ptr<Sender>& sender, v1::Phase phase,
                                         const std::string& message, const std::string& plugin) {
  sender->set_last_seen(clock_.MonotonicNow());
  v1::Activity activity;
  *activity.mutable_key() = Key(sender->node(), plugin);
  activity.set_phase(phase);
  activity.set_message(message);
  return board_.HandleActivity(activity.key(), sender, activity);
}

absl::Status BoardFixture::Report(const std::string& node, int64_t total, int64_t completed) {
  v1::ReportProgressRequest report;
  *report.mutable_key() = Key(node);
  report.set_total(total);
  report.set_completed(completed);
  return board_.Report(report);
}

void BoardFixture::Pass(absl::Duration time) {
  for (; time > absl::ZeroDuration(); time -= absl::Seconds(1)) {
    clock_.Advance(absl::Seconds(1));
    board_.Tick();
  }
}

absl::Status BoardFixture::Ask(const StatusQuery& query, v1::RunStatus* status) {
  std::string bytes;
  absl::Status asked = absl::DeadlineExceededError("it waits for the pairs");
  board_.FindWithPairs(query.run, "spiffe://f/user/ann",
                       [&](const absl::StatusOr<std::shared_ptr<RunBoard>>& run) {
                         asked = run.ok() ? board_.Get(**run, query, &bytes) : run.status();
                       });
  EXPECT_TRUE(status->ParseFromString(bytes));
  return asked;
}

v1::RunStatus BoardFixture::Get(int page_size, const std::string& token) {
  StatusQuery query;
  query.run = kRun;
  query.page_size = page_size;
  query.page_token = token;
  v1::RunStatus status;
  EXPECT_TRUE(Ask(query, &status).ok());
  return status;
}

v1::PairStatus BoardFixture::Pair(const std::string& node) {
  const v1::RunStatus status = Get(1000);
  for (const v1::PairStatus& pair : status.pairs()) {
    if (pair.node() == node) return pair;
  }
  return {};
}

std::string BoardFixture::ReasonOfPair(const std::string& node) {
  return std::string(ReasonName(Pair(node).reason()));
}

}  // namespace muster::testing
