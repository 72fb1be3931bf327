#include "cli/commands/share_view.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exit_code.h"
#include "cli/output/format.h"
#include "services/common/errors/shares.h"

namespace muster::cli {
namespace {

std::string FormatTime(const google::protobuf::Timestamp& time) {
  return HumanTime(FromProto(time), absl::Now());
}

}  // namespace

std::string StateWord(v1::ShareState state) {
  switch (state) {
    case v1::SHARE_STATE_IN_TRANSIT:
      return "in-transit";
    case v1::SHARE_STATE_DELIVERED:
      return "delivered";
    case v1::SHARE_STATE_REFUSED:
      return "refused";
    case v1::SHARE_STATE_EXPIRED:
      return "expired";
    case v1::SHARE_STATE_REMOVED:
      return "removed";
    default:
      return "unknown";
  }
}

Json ToJson(const v1::Share& share) {
  const v1::SharedFile& file = share.file();
  Json json;
  json["source"] = file.key().source();
  json["target"] = file.key().target();
  json["id"] = file.key().id();
  json["size"] = file.size();
  json["sha256"] = Hex(file.sha256());
  json["sign_time"] = Rfc3339(FromProto(file.sign_time()));
  json["expire_time"] = Rfc3339(FromProto(file.expire_time()));
  json["state"] = StateWord(share.state());
  json["reason"] = share.reason();
  json["relay"] = share.relay();
  json["change_time"] = Rfc3339(FromProto(share.change_time()));
  return json;
}

std::string Expiry(const v1::SharedFile& file) {
  return file.has_expire_time() ? FormatTime(file.expire_time()) : "never";
}

std::string SharedAt(const v1::SharedFile& file) { return FormatTime(file.sign_time()); }

absl::StatusOr<int> ReportOutcome(Console& console, const CommandLine& line,
                                  const v1::Share& share) {
  const v1::ShareKey& key = share.file().key();
  if (line.json) console.out << Dump(ToJson(share));
  const std::string file = absl::StrCat(key.id(), " from ", key.source(), " to ", key.target());
  switch (share.state()) {
    case v1::SHARE_STATE_DELIVERED:
      PrintMessage(console, absl::StrCat(file, " is delivered to relay ", share.relay(),
                                         ", expires: ", Expiry(share.file()), "."));
      return kExitOk;
    case v1::SHARE_STATE_IN_TRANSIT:
      PrintMessage(console,
                   absl::StrCat(file, " is stored at relay ", share.relay(),
                                ", which forwards it as soon as possible.\nShow its state: muster "
                                "shared show --to ",
                                key.target(), " --id ", key.id()));
      return kExitOk;
    default:
      break;
  }
  switch (share.state()) {
    case v1::SHARE_STATE_REFUSED:
      return errors::ShareRefusedAt(file, share.relay(), share.reason());
    case v1::SHARE_STATE_EXPIRED:
      return errors::ShareExpiredAt(file, share.relay(), share.reason());
    default:
      return errors::ShareRemovedAt(file, share.relay(), share.reason());
  }
}

}  // namespace muster::cli
