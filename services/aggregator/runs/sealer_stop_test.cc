// Builds of archives while the service stops.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "services/aggregator/runs/sealer.h"
#include "services/aggregator/testing/test_state.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/forwarding_blob_store.h"
#include "services/common/upload/blob_names.h"

namespace muster {
namespace {

using testing::TestState;

constexpr char kOther[] = "00112233445566bb";

// Calls a function before each read of a stored result.
class HookedBlobs : public ForwardingBlobStore {
 public:
  HookedBlobs(BlobStore& blobs, std::function<void()> before_read)
      : ForwardingBlobStore(blobs), before_read_(std::move(before_read)) {}

  absl::StatusOr<std::unique_ptr<ByteSource>> Open(std::string_view name, int64_t at) override {
    ASSIGN_OR_RETURN(auto source, ForwardingBlobStore::Open(name, at));
    return std::make_unique<Source>(std::move(source), before_read_);
  }

 private:
  class Source : public ByteSource {
   public:
    Source(std::unique_ptr<ByteSource> source, const std::function<void()>& before_read)
        : source_(std::move(source)), before_read_(before_read) {}
    absl::StatusOr<size_t> Read(std::span<char> buffer) override {
      before_read_();
      return source_->Read(buffer);
    }

   private:
    const std::unique_ptr<ByteSource> source_;
    const std::function<void()>& before_read_;
  };

  const std::function<void()> before_read_;
};

// Commits a result whose bytes are a blob.
void CommitBlob(TestState& state) {
  const std::string content = "0123456789";
  auto staged = *state.blobs().Stage("aa", -1);
  ASSERT_TRUE(staged->Append(content, Crc32c(content)).ok());
  CommitResult commit = Genuine(KeyOf("n1"), content);
  commit.result.sha256 = DigestBytes(Sha256::Of(content));
  commit.result.body.clear();
  commit.result.blob = ResultBlobName(kRun, "aa");
  ASSERT_TRUE(staged->Publish(commit.result.blob).ok());
  state.Apply(std::move(commit));
}

TEST(SealerStopTest, StopEndsBuildsAndLeavesTheirRunsToTheNextStart) {
  TestState state;
  state.Plan({"n1"});
  CommitBlob(state);
  state.Plan({"n1"}, kOther);
  CommitResult other = Genuine(KeyOf("n1"), "{}");
  other.result.key.run = kOther;
  state.Apply(std::move(other));

  std::promise<void> reading;
  std::promise<void> release;
  bool held = false;
  HookedBlobs blobs(state.blobs(), [&] {
    if (std::exchange(held, true)) return;
    reading.set_value();
    release.get_future().wait();
  });
  std::vector<std::string> failed;
  RedeliveryWait redeliveries(state.store(), blobs, state.clock,
                              "spiffe://f.muster/service/aggregator/a");
  const auto make_sealer = [&](Metrics& metrics) {
    return std::make_unique<Sealer>(
        state.store(), blobs, state.uploads(), PosixFileOps(), state / "", state.clock,
        redeliveries, "spiffe://f.muster/service/aggregator/a",
        [&](const std::string& run) { failed.push_back(run); }, metrics);
  };
  {
    Metrics metrics;
    const auto sealer = make_sealer(metrics);
    sealer->Seal(kRun);
    sealer->Seal(kOther);
    reading.get_future().wait();
    sealer->Stop();
    release.set_value();
  }
  for (const char* run : {kRun, kOther}) {
    EXPECT_EQ(state.Run(run).state, RunState::kPostProcessing) << run;
    EXPECT_EQ(state.Run(run).seal_fault, "") << run;
  }
  EXPECT_TRUE(failed.empty());
  EXPECT_TRUE(state.blobs().ListStaged()->empty());

  {
    Metrics metrics;
    make_sealer(metrics)->Seal(kRun);
  }
  EXPECT_EQ(state.Run().state, RunState::kComplete);
}

}  // namespace
}  // namespace muster
