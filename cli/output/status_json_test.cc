#include "cli/output/status_json.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "services/common/base/error.h"

namespace muster::cli {
namespace {

v1::RunStatus Example() {
  v1::RunStatus status;
  status.set_run("3f2a0123456789ab");
  status.set_title("nightly");
  status.set_damaged_results(2);
  status.set_state(v1::RUN_STATE_RUNNING);
  status.set_percent_complete(0.5);
  status.mutable_create_time()->set_seconds(1'763'730'000);
  status.mutable_deadline()->set_seconds(1'763'733'600);
  status.mutable_time()->set_seconds(1'763'730'060);
  status.mutable_counts()->set_planned(2);
  status.mutable_counts()->set_pending(1);
  status.mutable_counts()->set_genuine(1);
  v1::ReasonCount* count = status.add_reasons();
  count->set_reason(v1::REASON_NOT_RESPONDING);
  count->set_count(1);
  status.mutable_estimate()->mutable_earliest()->set_seconds(1'763'730'100);
  status.mutable_estimate()->mutable_latest()->set_seconds(1'763'730'200);
  status.set_doubt("heartbeats of a third of all senders stopped");
  v1::PluginStatus* plugin = status.add_plugins();
  plugin->set_plugin("hostfacts");
  plugin->set_percent_complete(0.5);
  *plugin->mutable_counts() = status.counts();
  v1::PairStatus* pair = status.add_pairs();
  pair->set_plugin("hostfacts");
  pair->set_node("n1");
  pair->set_outcome(v1::OUTCOME_PENDING);
  pair->set_presence(v1::PRESENCE_SUSPECT);
  pair->set_reason(v1::REASON_NOT_RESPONDING);
  pair->mutable_reason_since()->set_seconds(1'763'730'050);
  pair->set_detail("no heartbeat for 17 s");
  pair->set_next("becomes timed out in 2m 43s");
  pair->mutable_heartbeat_age()->set_seconds(17);
  pair->set_phase(v1::PHASE_WORKING);
  pair->mutable_progress()->set_total(10);
  pair->mutable_progress()->set_completed(3);
  pair->mutable_progress()->set_message("mounts");
  pair->mutable_progress()->add_failures("/srv");
  pair->mutable_progress()->add_errors("cannot mount");
  pair->mutable_progress()->set_omitted_failures(4);
  pair->mutable_progress()->set_omitted_errors(5);
  v1::PairStatus* done = status.add_pairs();
  done->set_plugin("e2e");
  done->set_node("global");
  done->set_outcome(v1::OUTCOME_GENUINE);
  done->set_size(1234);
  return status;
}

TEST(StatusJsonTest, StatusHasTheFieldsOfTheOriginalDesign) {
  const Json json = StatusJson(Example());
  EXPECT_EQ(json["status"], "running");
  EXPECT_EQ(json["percent_complete"], 0.5);
  ASSERT_EQ(json["plugins"].size(), 2u);
  EXPECT_EQ(json["plugins"][0]["name"], "hostfacts");
  EXPECT_EQ(json["plugins"][0]["node"], "n1");
  EXPECT_EQ(json["plugins"][0]["status"], "running");
  EXPECT_EQ(json["plugins"][0]["last-heartbeat"], 17);
  EXPECT_EQ(json["plugins"][0]["state"], "suspect");
  EXPECT_EQ(json["plugins"][0]["reason"], "not-responding");
  EXPECT_EQ(json["plugins"][1]["node"], "") << "a plugin that runs once";
  EXPECT_EQ(json["plugins"][1]["status"], "complete");
  EXPECT_FALSE(json["plugins"][1].contains("last-heartbeat"));
  EXPECT_FALSE(json["plugins"][1].contains("reason"));
}

TEST(StatusJsonTest, PlannedRunHasTheStatusRunning) {
  v1::RunStatus status;
  status.set_state(v1::RUN_STATE_PLANNED);
  EXPECT_EQ(StatusJson(status)["status"], "running");
  EXPECT_EQ(StatusJson(status)["state"], "planned");
}

TEST(StatusJsonTest, EachOutcomeHasItsWord) {
  const auto word = [](v1::Outcome outcome) {
    v1::PairStatus pair;
    pair.set_outcome(outcome);
    return StatusJson(pair)["status"];
  };
  EXPECT_EQ(word(v1::OUTCOME_PENDING), "running");
  EXPECT_EQ(word(v1::OUTCOME_GENUINE), "complete");
  EXPECT_EQ(word(v1::OUTCOME_ERROR), "failed");
  EXPECT_EQ(word(v1::OUTCOME_TIMED_OUT), "timed_out");
}

TEST(StatusJsonTest, PendingPairOfAnEndedRunHasNoOutcome) {
  v1::PairStatus pair;
  pair.set_outcome(v1::OUTCOME_PENDING);
  pair.set_reason(v1::REASON_RUN_ENDED);
  EXPECT_EQ(StatusJson(pair)["status"], "no_outcome");
  EXPECT_EQ(StatusJson(pair)["reason"], "run-ended");
}

TEST(StatusJsonTest, WrittenJsonIsParsedUnchanged) {
  const auto back = ParseStatusJson(Dump(StatusJson(Example())));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*back, Example()))
      << back->DebugString();
}

TEST(StatusJsonTest, JsonWithOnlyTheOriginalFieldsIsParsed) {
  const auto status = ParseStatusJson(
      R"({"status":"post-processing","percent_complete":1,
          "plugins":[{"name":"e2e","node":"","status":"timed_out","last-heartbeat":200}]})");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), v1::RUN_STATE_POST_PROCESSING);
  ASSERT_EQ(status->pairs_size(), 1);
  EXPECT_EQ(status->pairs(0).node(), "global");
  EXPECT_EQ(status->pairs(0).outcome(), v1::OUTCOME_TIMED_OUT);
  EXPECT_EQ(status->pairs(0).heartbeat_age().seconds(), 200);
}

TEST(StatusJsonTest, OtherJsonFails) {
  for (const char* text : {"", "[]", "null", "{}", R"({"status":"running"})",
                           R"({"status":"running","plugins":{}})", "<html>"}) {
    EXPECT_EQ(ReasonOf(ParseStatusJson(text).status()), "INVALID_STATUS") << text;
  }
}

TEST(StatusJsonTest, FieldsOfWrongTypesAreIgnored) {
  const auto status = ParseStatusJson(
      R"({"status":7,"percent_complete":"all","plugins":[3,{"name":1,"last-heartbeat":"x"}],
          "counts":[],"summary":[{"once":"no"}],"reasons":{"slow":"many"}})");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->pairs_size(), 1);
}

}  // namespace
}  // namespace muster::cli
