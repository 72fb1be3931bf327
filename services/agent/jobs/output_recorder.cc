#include "services/agent/jobs/output_recorder.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/jobs/job_record.h"

namespace muster {
namespace {

constexpr absl::Duration kGather = absl::Milliseconds(100);
// More than the frame and the record add to the data.
constexpr int64_t kOverhead = 64;

v1::JobRecord CutRecord(int64_t bytes) {
  v1::JobRecord record;
  record.mutable_cut()->set_bytes(bytes);
  return record;
}

}  // namespace

OutputRecorder::OutputRecorder(RecordOutbox& log, SpoolQuota& quota, bool keep, int64_t max_output)
    : log_(log), quota_(quota), keep_(keep), max_output_(max_output) {
  const RecordOutbox::Content content = log.content();
  for (const auto& [name, known] : {std::pair(v1::JOB_STREAM_STDOUT, &content.out),
                                    std::pair(v1::JOB_STREAM_STDERR, &content.err)}) {
    Of(name).stored = ReceivedBytes(known->in_log);
    Of(name).total = known->bytes - known->in_log.bytes();  // what the log lacks
    kept_ += known->bytes;
  }
  cutting_ = content.cut;
  cut_ = -content.cut_bytes;  // they come again
}

bool OutputRecorder::Add(v1::JobStream name, std::string_view data, absl::Duration now) {
  Stream& stream = Of(name);
  stream.total += static_cast<int64_t>(data.size());
  if (!keep_) return false;
  data = stream.stored.Skip(data);
  const int64_t before = spent_;
  while (!data.empty()) {
    if (cutting_) {
      cut_ += static_cast<int64_t>(data.size());
      break;
    }
    if (stream.waiting.empty()) stream.since = now;
    const size_t n = std::min(data.size(), kMaxJobOutput - stream.waiting.size());
    stream.waiting.append(data.substr(0, n));
    data.remove_prefix(n);
    if (stream.waiting.size() == kMaxJobOutput || now - recorded_ >= kGather) Record(name, now);
  }
  return spent_ != before;
}

absl::Duration OutputRecorder::flush_at() const {
  absl::Duration at = absl::InfiniteDuration();
  for (const Stream& stream : streams_) {
    if (!stream.waiting.empty()) at = std::min(at, stream.since + kGather);
  }
  return at;
}

bool OutputRecorder::Flush(absl::Duration now) {
  const int64_t before = spent_;
  for (const v1::JobStream name : {v1::JOB_STREAM_STDOUT, v1::JOB_STREAM_STDERR}) {
    const Stream& stream = Of(name);
    if (!stream.waiting.empty() && stream.since + kGather <= now) Record(name, now);
  }
  return spent_ != before;
}

std::optional<v1::JobRecord> OutputRecorder::Finish() {
  Flush(absl::InfiniteDuration());
  if (cut_ <= 0) return std::nullopt;
  ReserveCut();
  return CutRecord(std::exchange(cut_, 0));
}

void OutputRecorder::Record(v1::JobStream name, absl::Duration now) {
  std::string data = std::exchange(Of(name).waiting, std::string());
  recorded_ = now;
  if (!cutting_ && KeepRecord(name, &data)) return;
  // `data` is what did not fit.
  if (!std::exchange(cutting_, true)) {
    AppendCut(static_cast<int64_t>(data.size()));
  } else {
    cut_ += static_cast<int64_t>(data.size());
  }
}

// Stores as much as it may. Returns false if `data` has a rest.
bool OutputRecorder::KeepRecord(v1::JobStream name, std::string* data) {
  const auto room = static_cast<size_t>(std::max<int64_t>(0, max_output_ - kept_));
  const size_t n = std::min(data->size(), room);
  const int64_t cost = static_cast<int64_t>(n) + kOverhead;
  if (n == 0 || spent_ + cost > 2 * max_output_ + kOverhead || !quota_.TryReserve(cost))
    return false;
  v1::JobRecord record;
  record.mutable_output()->set_stream(name);
  record.mutable_output()->set_data(data->substr(0, n));
  if (const absl::Status status = log_.Append(std::move(record)); !status.ok()) {
    quota_.Release(cost);
    Log(LogLevel::kError, "the output of a job cannot be stored", {{"error", status}});
    return false;
  }
  kept_ += static_cast<int64_t>(n);
  spent_ += cost;
  data->erase(0, n);
  return data->empty();
}

// If the record cannot be stored, the last one counts its bytes.
void OutputRecorder::AppendCut(int64_t bytes) {
  if (log_.Append(CutRecord(bytes)).ok()) {
    ReserveCut();
  } else {
    cut_ += bytes;
  }
}

void OutputRecorder::ReserveCut() {
  quota_.Reserve(kOverhead);
  spent_ += kOverhead;
}

}  // namespace muster
