// The defence of a relay against a parent that lies.
#include <cstdint>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/relay/testing/parent_link_fixture.h"
#include "services/relay/trust.h"

namespace muster {
namespace {

using ::testing::IsEmpty;

class HostileParentTest : public ParentLinkFixture {};

TEST_F(HostileParentTest, ForgedListOfSignersEndsTheStreamAndIsNotSentOn) {
  const auto child = AttachChild("n1");
  StartAccepted();
  child->Take();
  v1::AttachResponse message;
  message.mutable_revocations()->set_version(std::numeric_limits<int64_t>::max());
  message.mutable_revocations()->set_signature("forged");
  Deliver(message);
  EXPECT_EQ(ReasonOf(connector_->at(1).cancelled().value_or(absl::OkStatus())), "RELAY_REFUSED");
  EXPECT_THAT(child->Take(), IsEmpty());
  EXPECT_EQ(trust_.commands_version(), 0) << "the list of an honest parent would be ignored";
}

TEST_F(HostileParentTest, ParentThatRevokesALongNameLosesTheStream) {
  StartAccepted();
  v1::AttachResponse message;
  message.mutable_revoked()->add_subjects(std::string(kMaxSubjectBytes + 1, 'x'));
  Deliver(message);
  EXPECT_EQ(ReasonOf(connector_->at(1).cancelled().value_or(absl::OkStatus())), "RELAY_REFUSED");
}

TEST_F(HostileParentTest, EndsOfRunsWithoutAValidIdAreIgnored) {
  const auto child = AttachChild("n1");
  StartAccepted();
  child->Take();
  v1::AttachResponse message;
  message.mutable_collection_ended()->set_run(std::string(1'000'000, 'a'));
  Deliver(message);
  EXPECT_THAT(child->Take(), IsEmpty());
  message.mutable_welcome()->set_connected(true);
  message.mutable_welcome()->add_ended_runs(std::string(1'000'000, 'a'));
  Deliver(message);
  EXPECT_THAT(link_->ended_runs(), IsEmpty());
}

}  // namespace
}  // namespace muster
