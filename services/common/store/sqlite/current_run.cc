#include "services/common/store/sqlite/current_run.h"

namespace muster::sqlite {

std::optional<RunHead> FindRun(Connection& db, std::string_view run) {
  Rows rows = db.Query(
      "SELECT state, deadline_at, seal_grace, pending, fail_fast, result_bytes FROM runs"
      " WHERE id = ?",
      run);
  if (!rows.Next()) return std::nullopt;
  RunHead head;
  head.state = rows.Enum<RunState>();
  head.deadline_at = rows.Int();
  head.seal_grace = rows.Int();
  head.pending = rows.Int();
  head.fail_fast = rows.Bool();
  head.result_bytes = rows.Int();
  return head;
}

int64_t& CurrentRun::Steps::Of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPending:
      return pending;
    case Outcome::kGenuine:
      return genuine;
    case Outcome::kError:
      return errors;
    case Outcome::kTimedOut:
      break;
  }
  return timed_out;
}

const RunHead* CurrentRun::Find(std::string_view run) {
  if (!head_ || run_ != run) {
    Flush();
    run_ = run;
    head_ = FindRun(db_, run);
  }
  return head_ ? &*head_ : nullptr;
}

void CurrentRun::Count(Outcome from, Outcome to, int64_t bytes, int64_t sequence) {
  --steps_.Of(from);
  ++steps_.Of(to);
  steps_.bytes += bytes;
  head_->result_bytes += bytes;
  if (from == Outcome::kPending) --head_->pending;
  sequence_ = sequence;
}

void CurrentRun::Flush() {
  if (sequence_ == 0) return;
  db_.Run(
      "UPDATE runs SET pending = pending + ?, genuine = genuine + ?, errors = errors + ?,"
      " timed_out = timed_out + ?, result_bytes = result_bytes + ?, last_change = ?,"
      " last_result_change = ? WHERE id = ?",
      steps_.pending, steps_.genuine, steps_.errors, steps_.timed_out, steps_.bytes, sequence_,
      sequence_, run_);
  steps_ = {};
  sequence_ = 0;
}

void CurrentRun::Forget() {
  head_.reset();
  steps_ = {};
  sequence_ = 0;
}

}  // namespace muster::sqlite
