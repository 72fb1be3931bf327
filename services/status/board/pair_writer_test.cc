#include "services/status/board/pair_writer.h"

#include <google/protobuf/descriptor.h>

#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

constexpr absl::Duration kNow = absl::Seconds(5000);
const absl::Time kWall = absl::FromUnixMicros(1'700'000'000'123'456);

class PairWriterTest : public ::testing::Test {
 protected:
  PairWriterTest() {
    plugin_.name = "facts";
    pair_.plugin = &plugin_;
    pair_.node = "n1";
  }

  // A pair of which everything is known.
  void Fill() {
    pair_.outcome = v1::OUTCOME_PENDING;
    pair_.error = "disk \xc3\xa4 full";
    pair_.size = int64_t{1} << 40;
    pair_.updated = kWall - absl::Seconds(3);
    pair_.reason = v1::REASON_CRASHED;
    pair_.reason_since = kNow - absl::Milliseconds(1500);
    auto sender = std::make_shared<Sender>("spiffe://f/node/n1", "n1");
    sender->set_presence(v1::PRESENCE_LATE, kNow - absl::Seconds(1));
    sender->set_last_seen(kNow - absl::Milliseconds(21'500));
    sender->set_evidence(Evidence::kClosed);
    pair_.work = std::make_unique<Work>();
    pair_.work->sender = sender;
    pair_.work->received_at = kNow - absl::Seconds(40);
    pair_.work->phase = v1::PHASE_DELIVERING;
    pair_.work->progress = std::make_unique<v1::Progress>();
    pair_.work->progress->set_message(std::string(3000, 'm'));
    pair_.work->progress->add_failures("one");
    pair_.work->fault = std::make_unique<v1::Fault>();
    pair_.work->fault->set_address("h:1");
  }

  v1::PairStatus Written(bool brief = false) {
    std::string bytes;
    PairWriter writer(v1::RunStatus::kPairsFieldNumber, &bytes);
    writer.Add(pair_, PairView({kWall, kNow}, Outlook(), brief));
    EXPECT_EQ(writer.count(), 1);
    EXPECT_EQ(writer.bytes(), bytes.size());
    v1::RunStatus status;
    EXPECT_TRUE(status.ParseFromString(bytes));
    EXPECT_EQ(status.SerializeAsString(), bytes) << "as protobuf itself writes it";
    EXPECT_EQ(status.pairs_size(), 1);
    return status.pairs(0);
  }

  PluginPairs plugin_;
  Pair pair_;
};

TEST_F(PairWriterTest, AllKnownFieldsAreWritten) {
  Fill();
  // A pair has an outcome or a reason; pending is an outcome, too.
  const v1::PairStatus written = Written();
  const auto* const type = v1::PairStatus::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    if (type->field(i)->number() == v1::PairStatus::kRunFieldNumber) continue;  // only of GetNode
    EXPECT_TRUE(written.GetReflection()->HasField(written, type->field(i)))
        << type->field(i)->name();
  }
}

TEST_F(PairWriterTest, WrittenPairIsParsedAgain) {
  Fill();
  const v1::PairStatus written = Written();
  EXPECT_EQ(written.plugin(), "facts");
  EXPECT_EQ(written.node(), "n1");
  EXPECT_EQ(written.outcome(), v1::OUTCOME_PENDING);
  EXPECT_EQ(written.error(), pair_.error);
  EXPECT_EQ(written.size(), int64_t{1} << 40);
  EXPECT_EQ(FromProto(written.update_time()), pair_.updated);
  EXPECT_EQ(written.progress().SerializeAsString(), pair_.work->progress->SerializeAsString());
  EXPECT_EQ(written.presence(), v1::PRESENCE_LATE);
  EXPECT_EQ(written.reason(), v1::REASON_CRASHED);
  EXPECT_EQ(FromProto(written.reason_since()), kWall - absl::Milliseconds(1500));
  EXPECT_NE(written.detail().find("closed without a goodbye"), std::string::npos);
  EXPECT_NE(written.next(), "");
  EXPECT_EQ(written.heartbeat_age().seconds(), 21);
  EXPECT_EQ(written.heartbeat_age().nanos(), 500'000'000);
  EXPECT_EQ(written.phase(), v1::PHASE_DELIVERING);
  EXPECT_EQ(written.fault().address(), "h:1");
}

TEST_F(PairWriterTest, UnknownFieldsAreAbsent) {
  pair_.reason = v1::REASON_NOT_STARTED;
  pair_.reason_since = kNow;
  v1::PairStatus written = Written(/*brief=*/true);
  EXPECT_EQ(written.detail(), "");
  EXPECT_EQ(written.next(), "");
  EXPECT_FALSE(written.has_heartbeat_age());
  EXPECT_FALSE(written.has_update_time());
  EXPECT_FALSE(written.has_progress());
  EXPECT_FALSE(written.has_fault());
  EXPECT_TRUE(written.has_reason_since());
  pair_.reason_since = -absl::InfiniteDuration();
  EXPECT_FALSE(Written().has_reason_since());
  EXPECT_NE(Written(/*brief=*/false).next(), "");
  pair_.reason = v1::REASON_UNSPECIFIED;
  pair_.outcome = v1::OUTCOME_GENUINE;
  written = Written();
  EXPECT_FALSE(written.has_reason_since());
  EXPECT_EQ(written.outcome(), v1::OUTCOME_GENUINE);
}

TEST_F(PairWriterTest, PairWithAnOutcomeHasNoPhase) {
  Fill();
  pair_.outcome = v1::OUTCOME_GENUINE;
  pair_.reason = v1::REASON_UNSPECIFIED;
  EXPECT_EQ(Written().phase(), v1::PHASE_UNSPECIFIED);
}

// An empty message differs from a missing one.
TEST_F(PairWriterTest, AgeOfZeroIsWritten) {
  pair_.work = std::make_unique<Work>();
  pair_.work->received_at = kNow;
  pair_.reason = v1::REASON_RUNNING;
  v1::PairStatus written = Written();
  EXPECT_TRUE(written.has_heartbeat_age());
  EXPECT_EQ(written.heartbeat_age().nanos(), 0);
  EXPECT_EQ(written.presence(), v1::PRESENCE_UNSPECIFIED);
  pair_.work->received_at = -absl::InfiniteDuration();
  EXPECT_FALSE(Written().has_heartbeat_age());
}

}  // namespace
}  // namespace muster
