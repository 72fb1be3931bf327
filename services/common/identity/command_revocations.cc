#include "services/common/identity/command_revocations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/strings.h"
#include "services/common/errors/identity.h"

namespace muster {
namespace {

absl::Status Check(const v1::CommandRevocations& list, std::string_view fleet) {
  if (list.version() < 1) return errors::InvalidRevocations("its version is not above 0");
  if (list.revoked_size() > kMaxCommandRevocations) {
    return errors::InvalidRevocations(
        absl::StrCat("it has more than ", kMaxCommandRevocations, " names"));
  }
  for (const std::string& uri : list.revoked()) {
    const auto identity = ParseIdentity(uri, fleet);
    if (!identity.ok() ||
        (RoleOf(*identity) != Role::kOperator && RoleOf(*identity) != Role::kGateway)) {
      return errors::InvalidRevocations(
          "it names an identity that is neither an operator nor a gateway of this fleet");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string CommandRevocationsText(const v1::CommandRevocations& list, std::string_view fleet) {
  std::string text =
      absl::StrCat("muster-command-revocations-v1\n", ToAbsl(fleet), "\n", list.version(), "\n");
  for (const std::string& uri : list.revoked()) absl::StrAppend(&text, uri, "\n");
  return text;
}

absl::Status SignCommandRevocations(std::string_view fleet, const PrivateKey& key,
                                    v1::CommandRevocations* list) {
  RETURN_IF_ERROR(Check(*list, fleet));
  ASSIGN_OR_RETURN(auto signature, key.Sign(CommandRevocationsText(*list, fleet)));
  list->set_signature(std::move(signature));
  return absl::OkStatus();
}

absl::Status VerifyCommandRevocations(const v1::CommandRevocations& list, std::string_view fleet,
                                      const Certificate& command_ca) {
  RETURN_IF_ERROR(Check(list, fleet));
  ASSIGN_OR_RETURN(const auto key, command_ca.Key());
  if (key.Verify(CommandRevocationsText(list, fleet), list.signature())) return absl::OkStatus();
  return errors::RevocationsRefused();
}

bool IsRevoked(const v1::CommandRevocations& list, const Identity& signer) {
  const auto uri = ToUri(signer);
  return !uri.ok() || std::ranges::find(list.revoked(), *uri) != list.revoked().end();
}

}  // namespace muster
