// Verifies any bytes as a signed command of a stranger, which is never valid, and then as a command
// that an operator signed, which is valid only within the limits of CheckCommand.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/time/time.h"
#include "muster/v1/jobs.pb.h"
#include "services/common/identity/command_authority.h"
#include "services/common/identity/signed_command.h"

namespace {

constexpr char kFleet[] = "fleet-00112233.muster";

// The authority of the fleet and an operator, for the life of the process.
struct Signers {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  const muster::CommandAuthority authority =
      *muster::CommandAuthority::Create(kFleet, *muster::PrivateKey::Generate(), now);
  const muster::SigningKey key = *muster::SigningKey::Generate();
  const std::string chain =
      authority.Issue(muster::UserIdentity{"o"}, key.public_key(), now)->ToPem();
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Signers signers;
  const auto verify = [](const muster::v1::SignedCommand& command) {
    return muster::VerifyCommand(command, signers.authority.certificate(), kFleet, signers.now);
  };
  muster::v1::SignedCommand command;
  muster::v1::JobCommand::Target target;
  if (command.ParseFromArray(data, static_cast<int>(size)) && verify(command).ok()) std::abort();

  command.Clear();
  command.set_command(std::string(reinterpret_cast<const char*>(data), size));
  command.set_signature(*signers.key.Sign("muster-command-v1\n" + command.command()));
  command.set_certificate_chain_pem(signers.chain);
  if (const auto verified = verify(command); verified.ok()) {
    if (!muster::CheckCommand(verified->command).ok()) std::abort();
    if (verified->command.fleet() != kFleet) std::abort();
    if (target.ParseFromArray(data, static_cast<int>(size))) {
      (void)muster::CheckTarget(verified->command, "n1", target);
    }
  }
  return 0;
}
