// A real Docker daemon.
#include "services/agent/docker/container_streams.h"

#include <signal.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/agent/docker/testing/docker_fixture.h"
#include "services/common/base/error.h"
#include "testing/fixtures/await.h"

namespace muster {
namespace {

constexpr int64_t kLogFile = int64_t{64} << 20;

class ContainerStreamsTest : public testing::DockerTest {
 protected:
  std::string Create(const std::string& script, int64_t log_size = int64_t{1} << 30) {
    ContainerSpec spec;
    spec.log_size = log_size;
    spec.name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    spec.image = docker_->image();
    spec.command = {"/bin/sh", "-c", script};
    spec.labels = {{"muster", "test"}};
    const auto id = engine_.CreateContainer(spec);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or("");
  }

  int64_t FileSizeOf(const std::string& id) {
    const auto state = engine_.InspectContainer(id);
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? state->log_file_size : 0;
  }

  ContainerOutputSink Sink() {
    return [this](ContainerStream stream, std::string_view data) {
      (stream == ContainerStream::kStdout ? out_ : err_).append(data);
    };
  }

  std::unique_ptr<ContainerStreams> AttachAndStart(const std::string& id) {
    auto streams = ContainerStreams::Attach(engine_, id, passed_, Sink());
    EXPECT_TRUE(streams.ok()) << streams.status();
    const absl::Status started = engine_.StartContainer(id);
    EXPECT_TRUE(started.ok()) << started;
    return *std::move(streams);
  }

  void ReadToEnd(ContainerStreams& streams) {
    while (!(streams.ended() && streams.output_ended()) && streams.fault().ok()) {
      streams.Wait(-1, absl::Minutes(1));
    }
    EXPECT_TRUE(streams.fault().ok()) << streams.fault();
  }

  DockerEngine engine_{docker_->socket()};
  ContainerBytes passed_;  // of AttachAndStart
  std::string out_;
  std::string err_;
};

TEST_F(ContainerStreamsTest, EveryByteArrives) {
  // Lines of 16 KiB, bytes that are not UTF-8, zero bytes and no newline at the end.
  const std::string id = Create(
      "head -c 3000000 /dev/urandom > /tmp/bytes; cat /tmp/bytes; sha256sum < /tmp/bytes >&2; "
      "head -c 16384 /dev/zero | tr '\\0' x; printf '\\n\\0\\377\\r\\nend'");
  const auto streams = AttachAndStart(id);
  ReadToEnd(*streams);
  ASSERT_EQ(out_.size(), 3'000'000u + 16'384 + 8);
  EXPECT_EQ(out_.substr(3'000'000), std::string(16'384, 'x') + std::string("\n\0\xff\r\nend", 8));
  EXPECT_EQ(err_.size(), 64u + 4);
}

TEST_F(ContainerStreamsTest, EndIsSeenAlthoughNothingIsPrinted) {
  const auto streams = AttachAndStart(Create("exit 3"));
  ReadToEnd(*streams);
  EXPECT_EQ(out_ + err_, "");
}

DaemonLogBytes BytesOf(const std::string& output) {
  DaemonLogBytes bytes;
  bytes.Add(output);
  return bytes;
}

TEST_F(ContainerStreamsTest, FollowPassesOnlyWhatIsNew) {
  const std::string id =
      Create("printf 'one\\ntwo\\n'; printf 'E1\\nE2\\n' >&2; sleep 0.3; echo three");
  ReadToEnd(*AttachAndStart(id));
  EXPECT_EQ(out_, "one\ntwo\nthree\n");
  out_.clear();
  err_.clear();
  ContainerBytes passed = {.out = BytesOf("one\n"), .err = BytesOf("E1\nE2")};
  auto again = ContainerStreams::Follow(engine_, id, passed, kLogFile, Sink());
  ASSERT_TRUE(again.ok()) << again.status();
  ReadToEnd(**again);
  EXPECT_EQ(out_, "two\nthree\n");
  EXPECT_EQ(err_, "\n");
  EXPECT_FALSE((*again)->missing());
}

TEST_F(ContainerStreamsTest, LogWithAnotherBeginningIsReported) {
  const std::string id = Create("echo two; echo three");
  ReadToEnd(*AttachAndStart(id));
  ContainerBytes passed = {.out = BytesOf("one\n"), .err = {}};
  auto log = ContainerStreams::Follow(engine_, id, passed, kLogFile, Sink());
  ASSERT_TRUE(log.ok()) << log.status();
  ReadToEnd(**log);
  EXPECT_TRUE((*log)->missing());
}

TEST_F(ContainerStreamsTest, LogOfADaemonIsBounded) {
  const std::string id = Create("head -c 3000000 /dev/zero | tr '\\0' x", int64_t{1} << 20);
  ReadToEnd(*AttachAndStart(id));
  EXPECT_EQ(out_.size(), 3'000'000u) << "who is attached loses nothing";
  out_.clear();
  ContainerBytes none;
  auto log = ContainerStreams::Follow(engine_, id, none, FileSizeOf(id), Sink());
  ASSERT_TRUE(log.ok()) << log.status();
  ReadToEnd(**log);
  EXPECT_LE(out_.size(), size_t{1} << 20);
  EXPECT_GT(out_.size(), size_t{900} << 10) << "only the oldest file is removed";
  EXPECT_TRUE((*log)->missing()) << "although there is nothing to compare it with";
}

// Lines of one byte, for which the daemon needs most space.
TEST_F(ContainerStreamsTest, FullLogOfShortLinesIsReported) {
  const std::string id = Create("yes '' | head -n 60000", int64_t{1} << 20);
  ReadToEnd(*AttachAndStart(id));
  ASSERT_EQ(out_.size(), 60'000u);
  out_.clear();
  ContainerBytes none;
  auto log = ContainerStreams::Follow(engine_, id, none, FileSizeOf(id), Sink());
  ASSERT_TRUE(log.ok()) << log.status();
  ReadToEnd(**log);
  EXPECT_LT(out_.size(), 60'000u);
  EXPECT_TRUE((*log)->missing());
}

TEST_F(ContainerStreamsTest, LogThatIsNotFullIsWhole) {
  const std::string id = Create("head -c 700000 /dev/urandom", int64_t{1} << 20);
  ReadToEnd(*AttachAndStart(id));
  const std::string all = std::exchange(out_, "");
  ContainerBytes none;
  auto log = ContainerStreams::Follow(engine_, id, none, FileSizeOf(id), Sink());
  ASSERT_TRUE(log.ok()) << log.status();
  ReadToEnd(**log);
  EXPECT_EQ(out_, all);
  EXPECT_FALSE((*log)->missing());
}

TEST_F(ContainerStreamsTest, UnknownContainerIsRefused) {
  const auto streams = ContainerStreams::Attach(engine_, "none", passed_, Sink());
  EXPECT_EQ(ReasonOf(streams.status()), "DOCKER_FAILED") << streams.status();
}

TEST_F(ContainerStreamsTest, EndOfTheDaemonIsAFaultAndItsLogHasTheRest) {
  const std::string id = Create("for i in $(seq 100); do echo $i; sleep 0.05; done");
  auto streams = AttachAndStart(id);
  while (out_.find("10\n") == std::string::npos) streams->Wait(-1, absl::Seconds(10));
  docker_->Kill();
  while (streams->fault().ok() && !streams->output_ended()) streams->Wait(-1, absl::Seconds(10));
  EXPECT_FALSE(streams->ended());
  docker_->Start();
  auto rest = ContainerStreams::Follow(engine_, id, passed_, kLogFile, Sink());
  ASSERT_TRUE(rest.ok()) << rest.status();
  ReadToEnd(**rest);
  std::string want;
  for (int i = 1; i <= 100; ++i) absl::StrAppend(&want, i, "\n");
  EXPECT_EQ(out_, want);
}

}  // namespace
}  // namespace muster
