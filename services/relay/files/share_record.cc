#include "services/relay/files/share_record.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr absl::string_view kMagic = "muster-share-1";
constexpr size_t kFields = 8;

}  // namespace

std::string FormatShareRecord(const ShareRecord& record) {
  const std::string message = record.share.SerializeAsString();
  return absl::StrCat(kMagic, " ", static_cast<int>(record.stage), " ", record.order, " ",
                      record.from_parent ? 1 : 0, " ", record.unreported ? 1 : 0, " ",
                      record.removing ? 1 : 0, " ", record.child.empty() ? "-" : record.child, " ",
                      Crc32c(message), "\n", message);
}

absl::StatusOr<ShareRecord> ParseShareRecord(std::string_view id, std::string_view content) {
  const absl::Status damaged = absl::DataLossError("the record of a shared file is damaged");
  const size_t line = content.find('\n');
  if (line == std::string_view::npos) return damaged;
  const std::string_view message = content.substr(line + 1);
  const std::vector<std::string> fields =
      absl::StrSplit(ToAbsl(content.substr(0, line)), absl::ByChar(' '));
  ShareRecord record;
  record.id = std::string(id);
  int stage = 0;
  int from_parent = 0;
  int unreported = 0;
  int removing = 0;
  uint32_t crc = 0;
  if (fields.size() != kFields || fields[0] != kMagic || !absl::SimpleAtoi(fields[1], &stage) ||
      stage < 0 || stage > static_cast<int>(ShareStage::kEnded) ||
      !absl::SimpleAtoi(fields[2], &record.order) || !absl::SimpleAtoi(fields[3], &from_parent) ||
      !absl::SimpleAtoi(fields[4], &unreported) || !absl::SimpleAtoi(fields[5], &removing) ||
      !absl::SimpleAtoi(fields[7], &crc) || crc != Crc32c(message) ||
      !record.share.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return damaged;
  }
  record.stage = static_cast<ShareStage>(stage);
  record.from_parent = from_parent != 0;
  record.unreported = unreported != 0;
  record.removing = removing != 0;
  if (fields[6] != "-") record.child = fields[6];
  return record;
}

}  // namespace muster
