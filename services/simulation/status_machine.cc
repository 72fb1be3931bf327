#include "services/simulation/status_machine.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "services/aggregator/convert.h"
#include "services/common/base/status_macros.h"

namespace muster::testing {
namespace {

// Returns "n1=OUTCOME_PENDING n2=OUTCOME_GENUINE".
std::string Format(const std::map<std::string, v1::Outcome>& outcomes) {
  return absl::StrJoin(outcomes, " ", [](std::string* out, const auto& pair) {
    absl::StrAppend(out, pair.first, "=", v1::Outcome_Name(pair.second));
  });
}

}  // namespace

StatusMachine::Life::Life(FakeClock& clock, EndedRuns::Read read_pairs)
    : hub(clock, clock),
      board({&clock, &hub, &verdicts, [] { return std::string(); },
             [] { return std::vector<const RelayState*>(); },
             [](const std::string&, const v1::NodeEvent&) {}, [](const std::string&) {},
             [](const std::set<std::string>&) {}, [](const std::shared_ptr<const Sender>&) {},
             std::move(read_pairs), [](const std::string&) {}}) {}

StatusMachine::StatusMachine(Network& network, AggregatorMachine& aggregator)
    : network_(network), aggregator_(aggregator) {
  clock.Advance(absl::Hours(1));
}

void StatusMachine::Start() {
  life_ = std::make_unique<Life>(
      clock, [this](const std::string& run, const EndedRuns::Add& add,
                    const EndedRuns::Done& done) { done(ReadPairs(run, add)); });
}

void StatusMachine::Stop() {
  network_.Lose(kName);
  stream_.reset();
  life_.reset();
}

absl::Status StatusMachine::Follow() {
  if (!running()) return broken_;
  life_->board.Tick();
  if (stream_ == nullptr) Connect();
  for (int i = 0; i < 20 && stream_->source != nullptr; ++i) {
    v1::FollowChangesResponse event;
    const auto pull = stream_->source->Next(&event);
    if (!pull.ok()) {
      stream_->connection->Close(Connection::kServer);
      stream_.reset();
      break;
    }
    if (*pull != Pull::kMessage) break;
    stream_->connection->Send(Connection::kServer,
                              [this, weak = std::weak_ptr(stream_), event = std::move(event)] {
                                if (const auto stream = weak.lock()) Apply(*stream, event);
                              });
  }
  return broken_;
}

void StatusMachine::Connect() {
  stream_ = std::make_shared<Stream>();
  stream_->connection = network_.Connect(kName, aggregator_.machine());
  const auto lose = [this, weak = std::weak_ptr(stream_)] {
    if (const auto stream = weak.lock(); stream != nullptr && stream == stream_) stream_.reset();
  };
  stream_->connection->OnLost(Connection::kClient, lose);
  stream_->connection->OnLost(Connection::kServer, lose);
  stream_->connection->Send(
      Connection::kClient, [this, lose, weak = std::weak_ptr(stream_), cursor = life_->cursor] {
        const auto stream = weak.lock();
        if (stream == nullptr) return;
        if (!aggregator_.running()) return lose();
        SqliteStore& store = aggregator_.life().store();
        stream->source = std::make_unique<ChangeSource>(store, store, aggregator_.clock, cursor,
                                                        FollowedPairs::kAll, nullptr);
      });
}

void StatusMachine::Apply(Stream& stream, const v1::FollowChangesResponse& event) {
  if (event.has_snapshot_begin()) {
    life_->feed = event.snapshot_begin().feed();
    life_->in_snapshot = true;
  }
  if (event.has_snapshot_end()) life_->in_snapshot = false;
  life_->board.Apply(event);
  if (event.has_cursor()) {
    if (!event.has_snapshot_end() && event.cursor() <= stream.last) {
      Break(Broken(absl::StrCat("change ", event.cursor(), " follows ", stream.last)));
    }
    stream.last = event.cursor();
    life_->cursor = ChangeSource::Cursor{event.cursor(), life_->feed};
  }
  if (life_->in_snapshot) return;
  for (const auto& [id, run] : aggregator_.history.runs) Break(CheckRun(id, false));
}

absl::Status StatusMachine::ReadPairs(const std::string& run, const EndedRuns::Add& add) {
  if (!aggregator_.running()) return absl::UnavailableError("the aggregator is not running");
  SqliteStore& store = aggregator_.life().store();
  ChangeSource source(store, store, aggregator_.clock, run);
  for (;;) {
    v1::FollowChangesResponse event;
    ASSIGN_OR_RETURN(const Pull pull, source.Next(&event));
    if (pull != Pull::kMessage) return absl::OkStatus();
    add(event);
  }
}

bool StatusMachine::up_to_date() const {
  const auto last = aggregator_.life().store().Last();
  return life_->cursor && last.ok() && life_->cursor->sequence == *last;
}

absl::Status StatusMachine::Compare() {
  for (const auto& [id, run] : aggregator_.history.runs) RETURN_IF_ERROR(CheckRun(id, true));
  return absl::OkStatus();
}

// A run that has ended is shown with its outcomes; `compare`: all is as in the store, also the
// pairs that the board has to read for it.
absl::Status StatusMachine::CheckRun(const std::string& id, bool compare) {
  StatusQuery query;
  query.run = id;
  query.page_size = 1000;
  std::string bytes;
  v1::RunStatus status;
  absl::Status got;
  const auto show = [&](const absl::StatusOr<std::shared_ptr<RunBoard>>& run) {
    got = run.ok() ? life_->board.Get(**run, query, &bytes) : run.status();
  };
  if (compare) {
    life_->board.FindWithPairs(id, "", show);
  } else {
    show(life_->board.Find(id));
  }
  const bool parsed = status.ParseFromString(bytes);
  std::map<std::string, v1::Outcome> shown;
  for (const v1::PairStatus& pair : status.pairs()) shown[pair.node()] = pair.outcome();
  const auto pending = std::ranges::count_if(
      shown, [](const auto& pair) { return pair.second == v1::OUTCOME_PENDING; });
  if (got.ok() && parsed && status.state() == v1::RUN_STATE_COMPLETE && pending > 0) {
    return Broken(absl::StrCat("the board shows run ", id, " complete with ", pending, " pending"));
  }
  if (got.ok() && status.counts().pending() != pending) {
    return Broken(absl::StrCat("the board counts ", status.counts().pending(), " pending of ",
                               pending, " in run ", id));
  }
  if (!compare) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto view, aggregator_.life().store().GetRun(id));
  if (view.has_value() != got.ok()) return Broken(absl::StrCat("the board differs in run ", id));
  if (!view) return absl::OkStatus();
  if (status.state() != ToProto(view->run).state()) {
    return Broken(absl::StrCat("the board shows another state of run ", id));
  }
  ResultFilter filter;
  filter.run = id;
  filter.with_pending = true;
  ASSIGN_OR_RETURN(const auto page, aggregator_.life().store().ListResults(filter, "", 1000));
  std::map<std::string, v1::Outcome> stored;
  for (const ResultRecord& result : page.items) stored[result.key.node] = ToProto(result.outcome);
  if (shown == stored) return absl::OkStatus();
  return Broken(absl::StrCat("the board shows other outcomes of run ", id, ": ", Format(shown),
                             " instead of ", Format(stored)));
}

}  // namespace muster::testing
