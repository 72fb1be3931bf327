#include "services/common/identity/run_host.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(RunHost, ValidPatternsAreAccepted) {
  for (const char* pattern :
       {"{run}.collect.example.org", "muster-{run}.example.org", "{run}.local",
        "old.{run}.x1.example", "{run}.xn--bcher-kva.example"}) {
    EXPECT_TRUE(IsRunHostPattern(pattern)) << pattern;
  }
  const std::string label(63, 'a');
  EXPECT_TRUE(IsRunHostPattern("{run}." + label + ".org"));
}

TEST(RunHost, InvalidPatternsAreRefused) {
  for (const char* pattern : {"",
                              "collect.example.org",
                              "{run}",
                              "{run}.",
                              ".{run}.org",
                              "{run}..org",
                              "{run}.10",
                              "10.0.0.{run}",
                              "{run}.{run}.org",
                              "{RUN}.example.org",
                              "{run}.Example.org",
                              "-{run}.example.org",
                              "{run}-.example.org",
                              "{run}.exa_mple.org",
                              "{run}.example.org:443",
                              "https://{run}.example.org",
                              "*.{run}.example.org",
                              "{run}.example.org.",
                              "{run}.exa mple",
                              "{run}.b\xc3\xbc"
                              "cher.example"}) {
    EXPECT_FALSE(IsRunHostPattern(pattern)) << pattern;
  }
  EXPECT_FALSE(IsRunHostPattern("{run}." + std::string(64, 'a') + ".org"));
  EXPECT_FALSE(
      IsRunHostPattern(std::string(48, 'a') + "{run}.org"));  // 64 characters with a run id
  std::string longest = "{run}";
  while (longest.size() < 245) longest += ".example";
  EXPECT_FALSE(IsRunHostPattern(longest));
}

TEST(RunHost, OnlyTheNameOfTheRunContainsItsId) {
  const std::string host = HostOfRun("{run}.collect.example.org", "00000000000000aa");
  EXPECT_EQ(host, "00000000000000aa.collect.example.org");
  EXPECT_TRUE(IsHostOfRun(host, "00000000000000aa"));
  EXPECT_FALSE(IsHostOfRun(host, "00000000000000ab"));
  EXPECT_FALSE(IsHostOfRun("muster.example.org", "00000000000000aa"));
}

}  // namespace
}  // namespace muster
