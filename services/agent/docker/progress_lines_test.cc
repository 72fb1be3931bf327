#include "services/agent/docker/progress_lines.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ProgressLinesTest, ObjectsAndTheLastErrorAreRead) {
  std::vector<std::string> seen;
  ProgressLines lines([&](const nlohmann::json& object) { seen.push_back(object.dump()); });
  const std::string text =
      "{\"stream\":\"a\"}\r\n5\nx\n{\"error\":\"first\"}\n{\"error\":\"last\",\"errorDetail\":{}}\n"
      "{\"aux\":{}}\n";
  for (const char c : text) lines.Feed({&c, 1});  // cut anywhere
  EXPECT_EQ(seen, (std::vector<std::string>{"{\"stream\":\"a\"}", "{\"aux\":{}}"}));
  EXPECT_EQ(lines.failure(), "last");
}

TEST(ProgressLinesTest, LongLineIsIgnored) {
  int seen = 0;
  ProgressLines lines([&](const nlohmann::json&) { ++seen; });
  lines.Feed("{\"stream\":\"" + std::string(1 << 20, 'a') + "\"}\n{\"stream\":\"b\"}\n");
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(lines.failure(), "");
  lines.Feed("{\"error\":\"" + std::string(5'000, 'e') + "\"}\n");
  EXPECT_EQ(lines.failure().size(), 1'024u);
}

}  // namespace
}  // namespace muster
