#include "services/common/base/config.h"

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

class ConfigTest : public ::testing::Test {
 protected:
  ConfigTest() {
    config_.Address("listen", &listen_, "Where agents connect.");
    config_.String("state_dir", &state_dir_, "Where state rests.", [](const std::string& given) {
      return given.starts_with("/") ? std::nullopt : std::optional<std::string>("a path from /");
    });
    config_.OneOf("log.format", &format_, "How log lines look.", {"text", "json"});
    config_.Bool("log.colour", &colour_, "Colours on a terminal.");
    config_.Int("limits.threads", &threads_, "Threads for hashing.", 1, 64);
    config_.ByteSize("limits.chunk_max", &chunk_max_, "Largest chunk.", 4096, 4 << 20);
    config_.Duration("limits.stop.drain", &drain_, "How long a stop waits.", absl::Seconds(1),
                     absl::Minutes(5));
    config_.StringList("advertise", &advertise_, "Names of this machine.",
                       [](const std::string& given) {
                         return given.empty() ? std::optional<std::string>("a name") : std::nullopt;
                       });
  }

  std::string Problems(std::string_view text) {
    const absl::Status status = config_.Parse(text, "x.yaml");
    EXPECT_EQ(ReasonOf(status), status.ok() ? "" : "INVALID_CONFIG");
    return std::string(status.message());
  }

  HostPort listen_ = {"127.0.0.1", 7443};
  std::string state_dir_ = "/var/lib/muster";
  std::string format_ = "text";
  bool colour_ = true;
  int64_t threads_ = 2;
  uint64_t chunk_max_ = 1 << 20;
  absl::Duration drain_ = absl::Seconds(10);
  std::vector<std::string> advertise_ = {"localhost"};
  Config config_{"muster-relay"};
};

TEST_F(ConfigTest, ReadsEveryType) {
  EXPECT_EQ(Problems("listen: '[::1]:0'\nstate_dir: /tmp/x\nadvertise: [a, b]\n"
                     "log: {format: json, colour: false}\n"
                     "limits:\n  threads: 8\n  chunk_max: 64KiB\n  stop:\n    drain: 1m30s\n"),
            "");
  EXPECT_EQ(listen_, (HostPort{"::1", 0}));
  EXPECT_EQ(state_dir_, "/tmp/x");
  EXPECT_EQ(format_, "json");
  EXPECT_FALSE(colour_);
  EXPECT_EQ(threads_, 8);
  EXPECT_EQ(chunk_max_, 65536u);
  EXPECT_EQ(drain_, absl::Seconds(90));
  EXPECT_EQ(advertise_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(ConfigTest, WhatIsLeftOutKeepsItsDefault) {
  EXPECT_EQ(Problems(""), "");
  EXPECT_EQ(Problems("# nothing\nlog:\n"), "");
  EXPECT_EQ(threads_, 2);
}

TEST_F(ConfigTest, ReportsAllMistakesAtOnce) {
  EXPECT_EQ(Problems("listn: a:1\n"
                     "state_dir: relative\n"
                     "log:\n"
                     "  format: xml\n"
                     "  colour: yes\n"
                     "threads: 3\n"
                     "limits:\n"
                     "  threads: 65\n"
                     "  chunk_max: 64KB\n"
                     "  stop: 5\n"
                     "advertise: host\n"
                     "listen:\n"),
            "x.yaml:1: listn: no such field; did you mean listen?\n"
            "x.yaml:2: state_dir: \"relative\" is not valid; allowed: a path from /\n"
            "x.yaml:4: log.format: \"xml\" is not valid; allowed: text, json\n"
            "x.yaml:5: log.colour: \"yes\" is not valid; allowed: true, false\n"
            "x.yaml:6: threads: no such field; did you mean limits.threads?\n"
            "x.yaml:8: limits.threads: \"65\" is not valid; allowed: a whole number from 1 to 64\n"
            "x.yaml:9: limits.chunk_max: \"64KB\" is not valid; allowed: bytes such as 64KiB or "
            "4MiB, from 4KiB to 4MiB\n"
            "x.yaml:10: limits.stop: must hold a group of fields\n"
            "x.yaml:11: advertise: cannot be a single value; allowed: a list of texts\n"
            "x.yaml:12: listen: has no value; allowed: host:port, with IPv6 as [::1]:port");
}

TEST_F(ConfigTest, OtherMistakesAreNamedToo) {
  EXPECT_EQ(Problems("limts: {threads: 1}\n"),
            "x.yaml:1: limts: no such field; did you mean limits?");
  EXPECT_EQ(Problems("zebra: 1\n"), "x.yaml:1: zebra: no such field");
  EXPECT_EQ(Problems("log: {format: json}\nlog.format: text\n"),
            "x.yaml:2: log.format: given twice, first in line 1");
  EXPECT_EQ(Problems("log: {format: json}\nlog: {colour: true}\n"),
            "x.yaml:2: log: given twice, first in line 1");
  EXPECT_EQ(Problems("listen: [a]\n"),
            "x.yaml:1: listen: has the wrong kind of value; allowed: host:port, with IPv6 as "
            "[::1]:port");
  EXPECT_EQ(Problems("advertise: [a, '']\n"),
            "x.yaml:1: advertise: \"a, \" is not valid; allowed: a list, each element a name");
  EXPECT_EQ(Problems("limits: {stop: {drain: 6m}}\n"),
            "x.yaml:1: limits.stop.drain: \"6m\" is not valid; allowed: a time such as 30s or 5m, "
            "from 1s to 5m");
  EXPECT_EQ(Problems("- a\n- b\n"), "x.yaml:1: the file must hold fields as `name: value`");
  EXPECT_EQ(Problems("listen: a:1\n---\nlisten: b:1\n").substr(0, 20), "x.yaml:1: the file h");
  EXPECT_EQ(Problems("listen: a:1\n  x: [\n").substr(0, 19), "x.yaml:2: not YAML:");
  EXPECT_EQ(Problems("{[a]: b}\n"), "x.yaml:1: a field's name must be plain text");
}

TEST_F(ConfigTest, HostileFilesEndInAMessage) {
  EXPECT_NE(Problems(std::string(100'000, '[')), "");
  EXPECT_NE(Problems(std::string("a\0b: \xff", 6)), "");
  const std::string long_value = Problems("listen: " + std::string(100'000, 'x'));
  EXPECT_LT(long_value.size(), 300u);
}

TEST_F(ConfigTest, PrintShowsCommentsRangesAndValues) {
  threads_ = 5;
  const std::string printed = config_.Print();
  EXPECT_EQ(printed.substr(0, printed.find("\n\n# Where state")),
            "# Configuration of muster-relay.\n\n# Where agents connect.\n"
            "# Allowed: host:port, with IPv6 as [::1]:port\nlisten: 127.0.0.1:7443");
  EXPECT_NE(
      printed.find("\nlimits:\n  # Threads for hashing.\n  # Allowed: a whole number from 1 to "
                   "64; default: 2\n  threads: 5\n"),
      std::string::npos)
      << printed;
  EXPECT_NE(printed.find("\n  stop:\n    # How long a stop waits.\n"), std::string::npos)
      << printed;
}

TEST_F(ConfigTest, WhatPrintWritesReadsBack) {
  listen_ = {"::1", 1};
  state_dir_ = "/a: b #c\n\"d'";
  advertise_ = {"a,b", "[c]", "true", "\x01"};
  colour_ = false;
  const std::string printed = config_.Print();
  listen_ = {};
  state_dir_ = "";
  advertise_ = {};
  EXPECT_EQ(Problems(printed), "");
  EXPECT_EQ(listen_, (HostPort{"::1", 1}));
  EXPECT_EQ(state_dir_, "/a: b #c\n\"d'");
  EXPECT_EQ(advertise_, (std::vector<std::string>{"a,b", "[c]", "true", "\x01"}));
  EXPECT_EQ(config_.Print(), printed);
}

TEST_F(ConfigTest, AnAddressWithoutADefaultMayBeLeftEmpty) {
  EXPECT_NE(Problems("listen: ''\n"), "");
  HostPort relay;
  config_.Address("relay", &relay, "The relay above, if any.");
  EXPECT_NE(config_.Print().find("relay: \"\"\n"), std::string::npos);
  EXPECT_EQ(Problems(config_.Print()), "");
  EXPECT_EQ(Problems("relay: a:1\n"), "");
  EXPECT_EQ(relay, (HostPort{"a", 1}));
}

TEST_F(ConfigTest, LoadNamesTheFile) {
  const std::string path = ::testing::TempDir() + "/config_test.yaml";
  ASSERT_TRUE(WriteFileAtomically(path, "limits:\n  threads: 0\n").ok());
  EXPECT_TRUE(ToStd(config_.Load(path).message()).starts_with(path + ":2: limits.threads: "));
  EXPECT_NE(NextStepOf(config_.Load(path)).find("muster-relay --print-config"), std::string::npos);
  ASSERT_TRUE(WriteFileAtomically(path, "limits:\n  threads: 9\n").ok());
  EXPECT_TRUE(config_.Load(path).ok());
  EXPECT_EQ(config_.FieldError("limits.threads", "too many for this machine").message(),
            path + ":2: limits.threads: too many for this machine");
  EXPECT_EQ(config_.FieldError("listen", "in use").message(), path + ": listen: in use");
  std::filesystem::remove(path);
  EXPECT_EQ(config_.Load(path).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster
