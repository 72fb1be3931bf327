#include "cli/rpc/sign_command.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "services/common/rpc/proto_time.h"
#include "testing/fixtures/test_fleet.h"

namespace muster::cli {
namespace {

OperatorContext ContextOf(const testing::TestFleet& fleet) {
  OperatorContext context;
  context.fleet = fleet.name();
  context.aggregator_targets = {absl::StrCat("127.0.0.1:", fleet.port())};
  context.fleet_ca_pem = fleet.fleet_ca_pem();
  context.certificate_chain_pem = fleet.admin().chain_pem;
  context.private_key_pem = Secret(fleet.admin().key_pem);
  return context;
}

v1::Command Command(absl::Time begin) {
  v1::Command command;
  command.set_action(std::string(kExecAction));
  command.add_argv("/bin/true");
  ToProto(begin, command.mutable_not_before());
  ToProto(begin + absl::Minutes(5), command.mutable_not_after());
  command.mutable_time_limit()->set_seconds(60);
  return command;
}

class SignCommandTest : public ::testing::Test {
 protected:
  testing::TestFleet fleet_;
  const CommandSigner signer_ = CommandSigner::Create(ContextOf(fleet_)).value();
};

// It is verified for its own time, which may be over.
TEST_F(SignCommandTest, StoredCommandIsVerifiedForItsTime) {
  const auto stored =
      SignForNodes(ContextOf(fleet_), Command(absl::Now() + absl::Hours(2)), {"n1"});
  ASSERT_TRUE(stored.ok()) << stored.status();
  const auto verified = signer_.VerifyStored(stored->command);
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->command.argv(0), "/bin/true");
  EXPECT_EQ(ToUri(verified->signer).value(),
            absl::StrCat("spiffe://", fleet_.name(), "/user/tester"));
}

TEST_F(SignCommandTest, ChangedCommandAndThatOfAnotherFleetAreRefused) {
  auto changed = SignForNodes(ContextOf(fleet_), Command(absl::Now()), {"n1"}).value().command;
  changed.mutable_command()->back() ^= 1;
  EXPECT_FALSE(signer_.VerifyStored(changed).ok());
  const testing::TestFleet other;
  const auto foreign = SignForNodes(ContextOf(other), Command(absl::Now()), {"n1"});
  EXPECT_FALSE(signer_.VerifyStored(foreign->command).ok());
}

}  // namespace
}  // namespace muster::cli
