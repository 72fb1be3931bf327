#include "services/common/jobs/job_record.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/error.h"

namespace muster {
namespace {

using Change = std::function<void(v1::JobRecord&)>;

v1::JobRecord Record(const Change& change) {
  v1::JobRecord record;
  record.set_job("0123456789abcdef0123456789abcdef");
  record.set_node("n1.example");
  record.set_sequence(1);
  record.mutable_time()->set_seconds(1'750'000'000);
  change(record);
  return record;
}

v1::JobRecord Output(const std::string& data) {
  return Record([&](v1::JobRecord& record) {
    record.mutable_output()->set_stream(v1::JOB_STREAM_STDERR);
    record.mutable_output()->set_data(data);
  });
}

v1::JobRecord Final(const std::function<void(v1::JobRecord::Final&)>& change) {
  return Record([&](v1::JobRecord& record) {
    record.mutable_final()->set_outcome(v1::JOB_OUTCOME_REFUSED);
    record.mutable_final()->set_reason("TARGET_NOT_IN_COMMAND");
    change(*record.mutable_final());
  });
}

using Values = std::vector<std::pair<std::string, std::string>>;

v1::JobRecord Outputs(const Values& values) {
  return Record([&](v1::JobRecord& record) {
    record.mutable_outputs();
    for (const auto& [name, value] : values) {
      auto& output = *record.mutable_outputs()->add_outputs();
      output.set_name(name);
      output.set_value(value);
    }
  });
}

// Returns outputs with sorted names.
Values Many(int count) {
  Values values;
  for (int i = 0; i < count; ++i) values.emplace_back("o" + std::to_string(100 + i), "1");
  return values;
}

TEST(JobRecordTest, RecordsWithinTheLimitsAreAccepted) {
  for (const v1::JobRecord& record :
       {Record([](v1::JobRecord& r) { r.mutable_started(); }), Output(""),
        Output(std::string(kMaxJobOutput, '\xff')),
        Record([](v1::JobRecord& r) { r.mutable_cut()->set_bytes(int64_t{1} << 40); }),
        Final([](v1::JobRecord::Final& f) { f.set_detail(std::string(4096, 'x')); }), Outputs({}),
        Outputs({{"A", "\"x\""}, {"_b1", ""}, {std::string(128, 'c'), "{\"d\":[1]}"}}),
        Outputs(Many(64)), Outputs({{"a", std::string(kMaxOutputs - 1, '1')}}),
        Record([](v1::JobRecord&) {})}) {
    EXPECT_TRUE(ValidateJobRecord(record).ok()) << record.ShortDebugString();
  }
}

TEST(JobRecordTest, OutputsOutsideTheLimitsAreRefused) {
  for (const Values& values :
       {Values{{"", "1"}}, Values{{"1a", "1"}}, Values{{"a-b", "1"}},
        Values{{std::string(129, 'a'), "1"}}, Values{{"b", "1"}, {"a", "1"}},
        Values{{"a", "1"}, {"a", "1"}}, Values{{"a", "1\n"}}, Values{{"a", "\r1"}}, Many(65),
        Values{{"a", std::string(kMaxOutputs, '1')}}}) {
    EXPECT_EQ(ReasonOf(ValidateJobRecord(Outputs(values))), "INVALID_JOB_RECORD")
        << values[0].first << ", " << values.size();
  }
}

TEST(JobRecordTest, RecordsOutsideTheLimitsAreRefused) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const v1::JobRecord& record :
       {Output(std::string(kMaxJobOutput + 1, 'x')),
        Record([](v1::JobRecord& r) { r.mutable_output()->set_data("of no stream"); }),
        Record([](v1::JobRecord& r) { r.clear_job(); }),
        Record([](v1::JobRecord& r) { r.set_job("../../etc"); }),
        Record([](v1::JobRecord& r) { r.set_job(std::string(65, 'a')); }),
        Record([](v1::JobRecord& r) { r.clear_node(); }),
        Record([](v1::JobRecord& r) { r.set_node("a/b"); }),
        Record([](v1::JobRecord& r) { r.set_sequence(0); }),
        Record([](v1::JobRecord& r) { r.set_sequence(kMost); }),
        Record([](v1::JobRecord& r) { r.mutable_time()->set_seconds(kMost); }),
        Record([](v1::JobRecord& r) { r.mutable_started()->mutable_time()->set_nanos(-1); }),
        Record([](v1::JobRecord& r) { r.mutable_cut()->set_bytes(-1); }),
        Record([](v1::JobRecord& r) { r.mutable_cut()->set_bytes(kMost); }),
        Record([](v1::JobRecord& r) { r.mutable_branch()->set_lost(true); }),
        Record([](v1::JobRecord& r) {
          r.GetReflection()->MutableUnknownFields(&r)->AddLengthDelimited(
              99, std::string(kMaxJobRecord, 'x'));
        }),
        Final([](v1::JobRecord::Final& f) { f.clear_outcome(); }),
        Final([](v1::JobRecord::Final& f) { f.set_outcome(static_cast<v1::JobOutcome>(99)); }),
        Final([](v1::JobRecord::Final& f) { f.set_stdout_bytes(-1); }),
        Final([](v1::JobRecord::Final& f) { f.set_stderr_bytes(kMost); }),
        Final([](v1::JobRecord::Final& f) { f.mutable_duration()->set_seconds(-1); }),
        Final([](v1::JobRecord::Final& f) { f.set_reason("not a reason"); }),
        Final([](v1::JobRecord::Final& f) { f.set_detail(std::string(4097, 'x')); })}) {
    EXPECT_EQ(ReasonOf(ValidateJobRecord(record)), "INVALID_JOB_RECORD")
        << record.ShortDebugString().substr(0, 200);
  }
}

}  // namespace
}  // namespace muster
