// A sealer over a real store and real files, for tests.
#ifndef MUSTER_SERVICES_AGGREGATOR_TESTING_SEALER_FIXTURE_H_
#define MUSTER_SERVICES_AGGREGATOR_TESTING_SEALER_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "services/aggregator/runs/sealer.h"
#include "services/aggregator/testing/test_state.h"
#include "services/common/base/crc32c.h"
#include "services/common/base/metrics.h"
#include "services/common/base/status_macros.h"
#include "services/common/blob/forwarding_blob_store.h"
#include "services/common/upload/blob_names.h"

namespace muster::testing {

// A blob store that runs a function when an archive is begun.
class InterruptedBlobs : public ForwardingBlobStore {
 public:
  using ForwardingBlobStore::ForwardingBlobStore;

  std::function<absl::Status()> on_stage = [] { return absl::OkStatus(); };
  std::string unreadable;  // a blob that cannot be opened
  std::string fault = "Input/output error";

  absl::StatusOr<std::unique_ptr<StagedBlob>> Stage(std::string_view id, int64_t size) override {
    RETURN_IF_ERROR(on_stage());
    return ForwardingBlobStore::Stage(id, size);
  }
  absl::StatusOr<std::unique_ptr<ByteSource>> Open(std::string_view name, int64_t at) override {
    if (name == unreadable) return absl::InternalError(fault);
    return ForwardingBlobStore::Open(name, at);
  }
  absl::Status Remove(std::string_view name) override {
    removed.emplace_back(name);
    return ForwardingBlobStore::Remove(name);
  }

  std::vector<std::string> removed;
};

class SealerFixture : public ::testing::Test {
 protected:
  // Returns after the build succeeded or failed.
  void Seal() {
    Metrics metrics;
    {
      Sealer sealer(
          state_.store(), blobs_, state_.uploads(), PosixFileOps(), state_ / "", state_.clock,
          redeliveries_, "spiffe://f.muster/service/aggregator/a",
          [this](const std::string& run) { failed_.push_back(run); }, metrics);
      sealer.Seal(kRun);
    }
    EXPECT_NE(metrics.Text().find("muster_seal_seconds_count 1"), std::string::npos);
  }

  // Seals with one sealer, of which the first builds are expected to fail, and the last one is
  // `pause` later. Returns its metrics.
  std::string SealAfterFailures(int failures, absl::Duration pause = absl::ZeroDuration()) {
    Metrics metrics;
    {
      std::vector<std::promise<void>> ended(static_cast<size_t>(failures) + 1);
      Sealer sealer(
          state_.store(), blobs_, state_.uploads(), PosixFileOps(), state_ / "", state_.clock,
          redeliveries_, "spiffe://f.muster/service/aggregator/a",
          [&](const std::string& run) {
            failed_.push_back(run);
            ended[failed_.size() - 1].set_value();
          },
          metrics);
      for (int i = 0; i < failures; ++i) {
        sealer.Seal(kRun);
        ended[static_cast<size_t>(i)].get_future().wait();
        state_.clock.Advance(std::max(kSealRetry, kReadFailureSpacing));
      }
      state_.clock.Advance(pause);
      sealer.Seal(kRun);
    }
    return metrics.Text();
  }

  // Stores the result of node n1 in a blob.
  void CommitBlob(const std::string& name = "aa") {
    const std::string content = "0123456789";
    auto staged = blobs_.Stage(name, -1);
    ASSERT_TRUE(staged.ok()) << staged.status();
    ASSERT_TRUE((*staged)->Append(content, Crc32c(content)).ok());
    const std::string blob = ResultBlobName(kRun, name);
    ASSERT_TRUE((*staged)->Publish(blob).ok());
    CommitResult commit = Intact(KeyOf("n1"), content);
    commit.result.body = "";
    commit.result.blob = blob;
    state_.Apply(commit);
    blob_ = blob;
  }

  void DamageBlob() {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(state_ / "blobs/blobs")) {
      if (entry.is_regular_file()) std::ofstream(entry.path(), std::ios::in).put('X');
    }
  }

  std::string Archive() {
    const auto source = blobs_.Open(state_.Run().archive.blob, 0);
    EXPECT_TRUE(source.ok()) << source.status();
    std::string bytes(static_cast<size_t>(state_.Run().archive.size) + 1, '\0');
    size_t got = 0;
    while (source.ok()) {
      const auto n = (*source)->Read({bytes.data() + got, bytes.size() - got});
      if (!n.ok() || *n == 0) break;
      got += *n;
    }
    bytes.resize(got);
    return bytes;
  }

  TestState state_;
  InterruptedBlobs blobs_{state_.blobs()};
  RedeliveryWait redeliveries_{state_.store(), blobs_, state_.clock,
                               "spiffe://f.muster/service/aggregator/a"};
  std::vector<std::string> failed_;
  std::string blob_;
};

}  // namespace muster::testing

#endif  // MUSTER_SERVICES_AGGREGATOR_TESTING_SEALER_FIXTURE_H_
