#include "testing/load/simulated_job.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/time/clock.h"
#include "services/common/rpc/proto_time.h"

namespace muster::load {
namespace {

constexpr int64_t kPiece = 32 << 10;
constexpr int64_t kUnacknowledgedPieces = 2;
constexpr size_t kMaxMessage = 256 << 10;
constexpr int64_t kLine = 16;
constexpr int kMaxLine = 10'000'000;

// Starts at `offset`, which is at the beginning of a line.
std::string Output(int number, int64_t offset, int64_t size) {
  std::string text;
  text.reserve(static_cast<size_t>(size + kLine));
  char line[2 * kLine];
  for (int64_t at = offset; at < offset + size; at += kLine) {
    std::snprintf(line, sizeof(line), "%07d %07d\n", number % kMaxLine,
                  static_cast<int>(at / kLine % kMaxLine));
    text.append(line, kLine);
  }
  text.resize(static_cast<size_t>(size));
  return text;
}

}  // namespace

SimulatedJob::SimulatedJob(std::string id, std::string node, int number, int64_t size,
                           FinalSigner sign)
    : id_(std::move(id)),
      node_(std::move(node)),
      number_(number),
      size_(size),
      sign_(std::move(sign)),
      start_(absl::Now()) {}

int64_t SimulatedJob::Pieces() const { return (size_ + kPiece - 1) / kPiece; }

int64_t SimulatedJob::PiecesUpTo(int64_t sequence) const {
  return std::clamp<int64_t>(sequence - 1, 0, Pieces());
}

bool SimulatedJob::AddRecords(v1::JobRecords* out) {
  bool any = false;
  while (sent_ < Last() && out->ByteSizeLong() + kPiece < kMaxMessage) {
    if (PiecesUpTo(sent_ + 1) - PiecesUpTo(acknowledged_) > kUnacknowledgedPieces) break;
    Make(++sent_, out->add_records());
    any = true;
    if (!std::exchange(started_, true)) break;
  }
  return any;
}

void SimulatedJob::Make(int64_t sequence, v1::JobRecord* record) const {
  record->set_job(id_);
  record->set_node(node_);
  record->set_sequence(sequence);
  ToProto(start_, record->mutable_time());
  if (sequence == 1) return ToProto(start_, record->mutable_started()->mutable_time());
  if (sequence < Last()) {
    const int64_t offset = (sequence - 2) * kPiece;
    record->mutable_output()->set_stream(v1::JOB_STREAM_STDOUT);
    record->mutable_output()->set_data(Output(number_, offset, std::min(kPiece, size_ - offset)));
    return;
  }
  v1::JobRecord::Final& final = *record->mutable_final();
  final.set_outcome(v1::JOB_OUTCOME_EXITED);
  final.set_stdout_bytes(size_);
  ToProto(absl::Now() - start_, final.mutable_duration());
  Sign(record);
}

void SimulatedJob::Sign(v1::JobRecord* final) const {
  RecordsDigest digest;
  for (int64_t sequence = 1; sequence < Last(); ++sequence) {
    v1::JobRecord record;
    Make(sequence, &record);
    digest.Add(record);
  }
  digest.Add(*final);
  auto signature = sign_(*final, digest);
  if (signature.ok()) *final->mutable_final()->mutable_signature() = *std::move(signature);
}

bool SimulatedJob::Acknowledge(int64_t sequence) {
  acknowledged_ = std::max(acknowledged_, std::min(sequence, Last()));
  sent_ = std::max(sent_, acknowledged_);
  return acknowledged_ == Last();
}

}  // namespace muster::load
