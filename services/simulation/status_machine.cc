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

constexpr absl::Duration kReadLimit = absl::Seconds(30);

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
                    const EndedRuns::Done& done) { ReadPairs(run, add, done); });
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
        stream->source =
            std::make_unique<ChangeSource>(store, store, aggregator_.clock, cursor,
                                           FollowedChanges::kAll, "spiffe://f/user/", nullptr);
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
  for (const auto& [id, run] : aggregator_.history.runs) {
    Break(CheckRun(id, life_->board.Find(id), Check::kFollowed));
  }
}

// As PairReader. The callbacks end with the process that made them.
void StatusMachine::ReadPairs(const std::string& run, const EndedRuns::Add& add,
                              const EndedRuns::Done& done) {
  const auto connection = network_.Connect(kName, aggregator_.machine());
  const std::weak_ptr read =
      *life_->reads.insert(std::make_shared<PairRead>(PairRead{add, done})).first;
  const EndedRuns::Done finish = [this, connection, read](const absl::Status& status) {
    const auto ended = read.lock();
    if (ended == nullptr) return;
    connection->Close(Connection::kClient);
    life_->reads.erase(ended);
    ended->done(status);
  };
  const auto lose = [finish] { finish(absl::UnavailableError("the connection is lost")); };
  connection->OnLost(Connection::kClient, lose);
  network_.After(kReadLimit, lose);
  connection->Send(Connection::kClient, [this, run, connection, read, finish] {
    if (!aggregator_.running()) return finish(absl::UnavailableError("nothing listens"));
    SendPairs(run, connection, read, finish);
  });
}

// The end of the aggregator.
void StatusMachine::SendPairs(const std::string& run, const std::shared_ptr<Connection>& connection,
                              const std::weak_ptr<PairRead>& read, const EndedRuns::Done& finish) {
  SqliteStore& store = aggregator_.life().store();
  ChangeSource source(store, store, aggregator_.clock, run);
  for (;;) {
    v1::FollowChangesResponse event;
    const auto pull = source.Next(&event);
    if (!pull.ok() || *pull != Pull::kMessage) {
      connection->Send(Connection::kServer, [finish, end = pull.status()] { finish(end); });
      return;
    }
    connection->Send(Connection::kServer, [read, event = std::move(event)] {
      if (const auto open = read.lock()) open->add(event);
    });
  }
}

bool StatusMachine::up_to_date() const {
  const auto last = aggregator_.life().store().Last();
  return life_->cursor && last.ok() && life_->cursor->sequence == *last;
}

void StatusMachine::AskForAll() {
  for (const auto& [id, run] : aggregator_.history.runs) Ask(id, Check::kExact);
}

void StatusMachine::Ask(const std::string& run, Check check) {
  ++life_->questions;
  life_->board.FindWithPairs(run, "", [this, run, check](const auto& found) {
    --life_->questions;
    if (check == Check::kExact && absl::IsUnavailable(found.status())) {
      // It waited for a read that began before the last fault. A client asks again.
      return AskLater(run, check);
    }
    Break(CheckRun(run, found, check));
  });
}

void StatusMachine::AskLater(const std::string& run, Check check) {
  ++life_->questions;
  network_.After(absl::Seconds(1), [this, run, check] {
    --life_->questions;
    Ask(run, check);
  });
}

absl::Status StatusMachine::CheckRun(const std::string& id,
                                     const absl::StatusOr<std::shared_ptr<RunBoard>>& found,
                                     Check check) {
  StatusQuery query;
  query.run = id;
  query.page_size = 1000;
  std::string bytes;
  v1::RunStatus status;
  const bool shown = found.ok() && life_->board.Get(**found, query, &bytes).ok();
  if (!status.ParseFromString(bytes)) return Broken("the board shows what cannot be read");
  const auto pending = std::ranges::count_if(
      status.pairs(), [](const auto& pair) { return pair.outcome() == v1::OUTCOME_PENDING; });
  if (shown && status.state() == v1::RUN_STATE_COMPLETE && pending > 0) {
    return Broken(absl::StrCat("the board shows run ", id, " complete with ", pending, " pending"));
  }
  if (shown && status.counts().pending() != pending) {
    return Broken(absl::StrCat("the board counts ", status.counts().pending(), " pending of ",
                               pending, " in run ", id));
  }
  if (check == Check::kExact) return CompareRun(id, status, shown);
  // The pairs of a run that has ended do not change until it is deleted.
  const RunHistory::State state = aggregator_.history.runs.at(id).state;
  const bool is_final =
      check == Check::kAsked && shown && (*found)->ended() && state == RunHistory::State::kEnded;
  if (!is_final || !aggregator_.running() || aggregator_.failing()) return absl::OkStatus();
  const absl::Status compared = CompareRun(id, status, shown);
  return IsBroken(compared) || !aggregator_.faulty ? compared : absl::OkStatus();
}

// Compares what the board shows with the store; a run that it does not show must not exist.
absl::Status StatusMachine::CompareRun(const std::string& id, const v1::RunStatus& status,
                                       bool shown) {
  ASSIGN_OR_RETURN(const auto view, aggregator_.life().store().GetRun(id));
  if (view.has_value() != shown) return Broken(absl::StrCat("the board differs in run ", id));
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
  std::map<std::string, v1::Outcome> listed;
  for (const v1::PairStatus& pair : status.pairs()) listed[pair.node()] = pair.outcome();
  if (listed == stored) return absl::OkStatus();
  return Broken(absl::StrCat("the board shows other outcomes of run ", id, ": ", Format(listed),
                             " instead of ", Format(stored)));
}

}  // namespace muster::testing
