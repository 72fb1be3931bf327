#include "services/common/jobs/job_record.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "absl/strings/ascii.h"
#include "services/common/base/names.h"
#include "services/common/base/sha256.h"
#include "services/common/base/strings.h"
#include "services/common/errors/jobs.h"
#include "services/common/templates/workspaces.h"

namespace muster {
namespace {

constexpr size_t kMaxJobId = 64;
constexpr size_t kMaxReason = 63;
constexpr size_t kMaxOutputName = 128;
constexpr size_t kMaxSignature = 256;
constexpr size_t kMaxChain = size_t{16} << 10;
constexpr size_t kMaxDetail = 4 * 1024;            // 1024 characters
constexpr int64_t kMaxNumber = int64_t{1} << 50;   // of records, bytes
constexpr int64_t kMaxSeconds = 315'576'000'000;   // limit of Duration
constexpr int64_t kFirstSecond = -62'135'596'800;  // limit of Timestamp
constexpr int64_t kLastSecond = 253'402'300'799;

absl::Status Invalid(std::string_view why) { return errors::InvalidJobRecord(why); }

bool IsTime(const google::protobuf::Timestamp& time) {
  return time.seconds() >= kFirstSecond && time.seconds() <= kLastSecond && time.nanos() >= 0 &&
         time.nanos() < 1'000'000'000;
}

bool IsCount(int64_t count) { return count >= 0 && count <= kMaxNumber; }

bool IsReason(std::string_view reason) {
  return reason.size() <= kMaxReason &&
         reason.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == reason.npos;
}

absl::Status ValidateFinal(const v1::JobRecord::Final& final) {
  if (final.outcome() == v1::JOB_OUTCOME_UNSPECIFIED || !v1::JobOutcome_IsValid(final.outcome())) {
    return Invalid("unknown outcome");
  }
  if (!IsCount(final.stdout_bytes()) || !IsCount(final.stderr_bytes())) {
    return Invalid("the number of output bytes is out of range");
  }
  const auto& duration = final.duration();
  if (duration.seconds() < 0 || duration.seconds() > kMaxSeconds || duration.nanos() < 0 ||
      duration.nanos() >= 1'000'000'000) {
    return Invalid("the duration is out of range");
  }
  if (!IsReason(final.reason())) return Invalid("the reason is not an UPPER_SNAKE_CASE word");
  if (final.detail().size() > kMaxDetail) return Invalid("the detail exceeds 4096 bytes");
  if (final.signature().records_sha256().size() > kSha256Size ||
      final.signature().signature().size() > kMaxSignature ||
      final.signature().certificate_chain_pem().size() > kMaxChain) {
    return Invalid("the signature or its certificates are too large");
  }
  return absl::OkStatus();
}

bool IsOutputName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxOutputName &&
         !absl::ascii_isdigit(static_cast<unsigned char>(name.front())) &&
         std::ranges::all_of(name, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
         });
}

absl::Status ValidateOutputs(const v1::JobRecord::Outputs& outputs) {
  if (outputs.outputs_size() > kMaxOutputCount) return Invalid("it has more than 64 outputs");
  size_t bytes = 0;
  std::string_view before;
  for (const v1::JobRecord::Outputs::Output& output : outputs.outputs()) {
    if (!IsOutputName(output.name())) {
      return Invalid("the name of an output is not [A-Za-z_][A-Za-z0-9_]{0,127}");
    }
    if (before >= output.name()) return Invalid("outputs are not sorted by name, each once");
    // The digest separates the values by line breaks.
    if (output.value().find_first_of("\r\n") != std::string::npos) {
      return Invalid("the value of an output has a line break");
    }
    before = output.name();
    bytes += output.name().size() + output.value().size();
  }
  return bytes > kMaxOutputs ? Invalid("outputs exceed 32 KiB") : absl::OkStatus();
}

absl::Status ValidateContent(const v1::JobRecord& record) {
  switch (record.record_case()) {
    case v1::JobRecord::kStarted:
      if (!IsTime(record.started().time())) return Invalid("the start time is out of range");
      return absl::OkStatus();
    case v1::JobRecord::kOutput:
      if (record.output().stream() != v1::JOB_STREAM_STDOUT &&
          record.output().stream() != v1::JOB_STREAM_STDERR) {
        return Invalid("unknown output stream");
      }
      if (record.output().data().size() > kMaxJobOutput) return Invalid("output exceeds 32 KiB");
      return absl::OkStatus();
    case v1::JobRecord::kCut:
      if (!IsCount(record.cut().bytes())) return Invalid("the number of cut bytes is out of range");
      return absl::OkStatus();
    case v1::JobRecord::kFinal:
      return ValidateFinal(record.final());
    case v1::JobRecord::kOutputs:
      return ValidateOutputs(record.outputs());
    case v1::JobRecord::kWorkspace: {
      const absl::Status valid = CheckSavedWorkspace(record.workspace());
      return valid.ok() ? valid : Invalid(ToStd(valid.message()));
    }
    case v1::JobRecord::kBranch:
      return Invalid("only the root reports branches");
    case v1::JobRecord::RECORD_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateJobRecord(const v1::JobRecord& record) {
  if (record.ByteSizeLong() > kMaxJobRecord) return Invalid("it exceeds 48 KiB");
  if (record.job().size() > kMaxJobId || !ValidateName("job", record.job()).ok()) {
    return Invalid("invalid job id");
  }
  if (!ValidateName("node", record.node()).ok()) return Invalid("invalid node name");
  if (record.sequence() < 1 || record.sequence() > kMaxNumber) {
    return Invalid("the sequence is out of range");
  }
  if (record.has_time() && !IsTime(record.time())) return Invalid("its time is out of range");
  return ValidateContent(record);
}

}  // namespace muster
