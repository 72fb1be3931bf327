#include "services/agent/jobs/test_commands.h"

#include <utility>

#include "absl/time/clock.h"
#include "services/common/base/random_id.h"
#include "services/common/identity/command_revocations.h"
#include "services/common/identity/signed_command.h"
#include "services/common/identity/signing_key.h"
#include "services/common/identity/target_set.h"

namespace muster {

TestCommands::TestCommands()
    : authority_(CommandAuthority::Create(kTestFleet, PrivateKey::Generate().value(), absl::Now())
                     .value()) {}

v1::Command TestCommands::Exec(std::vector<std::string> argv) {
  v1::Command command;
  command.set_fleet(kTestFleet);
  command.set_job(RandomHex(16));
  command.mutable_targets()->set_all(true);
  command.set_action(std::string(kExecAction));
  command.mutable_argv()->Assign(argv.begin(), argv.end());
  command.mutable_not_before()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  command.mutable_not_after()->set_seconds(absl::ToUnixSeconds(absl::Now() + absl::Minutes(1)));
  command.mutable_time_limit()->set_seconds(60);
  command.set_nonce(RandomHex(8));
  return command;
}

v1::SignedCommand TestCommands::Sign(const v1::Command& command, const std::string& operator_name) {
  const SigningKey key = SigningKey::Generate().value();
  const Certificate certificate =
      authority_.Issue(UserIdentity{operator_name}, key.public_key(), absl::Now()).value();
  return SignCommand(command, key, certificate.ToPem()).value();
}

v1::JobCommand TestCommands::ForNode(const v1::Command& command, const std::string& node,
                                     const std::string& operator_name) {
  v1::JobCommand sent;
  sent.set_job(command.job());
  *sent.mutable_command() = Sign(command, operator_name);
  sent.add_targets()->set_node(node);
  sent.mutable_begin_within()->set_seconds(10);
  return sent;
}

void TestCommands::SetTargets(const std::vector<std::string>& nodes, v1::Command* command) {
  const TargetSet set(nodes);
  command->mutable_targets()->Clear();
  command->mutable_targets()->set_nodes_sha256(set.root());
  command->mutable_targets()->set_count(static_cast<int64_t>(set.size()));
}

v1::CommandRevocations TestCommands::Revoke(const std::string& operator_name, int64_t version) {
  v1::CommandRevocations list;
  list.set_version(version);
  list.add_revoked(ToUri(Identity{kTestFleet, UserIdentity{operator_name}}).value());
  if (!SignCommandRevocations(kTestFleet, authority_.key(), &list).ok()) std::abort();
  return list;
}

}  // namespace muster
