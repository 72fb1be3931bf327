#include "services/common/templates/canonical_document.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"

namespace muster {
namespace {

TEST(CanonicalDocumentTest, YamlAndJsonHaveOneForm) {
  EXPECT_EQ(CanonicalDocument("b: 0.10\na: [x]\n").value(), R"({"a":["x"],"b":0.10})");
  EXPECT_EQ(CanonicalDocument(R"({"b": 0.10, "a": ["x"]})").value(), R"({"a":["x"],"b":0.10})");
}

TEST(CanonicalDocumentTest, LargeDocumentIsRefused) {
  const auto large = CanonicalDocument(absl::StrCat("a: ", std::string(30'000, 'x')));
  EXPECT_EQ(ReasonOf(large.status()), "INVALID_DOCUMENT");
}

}  // namespace
}  // namespace muster
