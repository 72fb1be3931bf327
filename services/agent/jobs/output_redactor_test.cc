#include "services/agent/jobs/output_redactor.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// Returns what is passed if the text is divided into pieces of this size.
std::string InPieces(const std::vector<std::string_view>& values, const std::string& text,
                     size_t size) {
  OutputRedactor redactor(values);
  std::string out;
  const auto sink = [&](v1::JobStream stream, std::string_view data) {
    EXPECT_EQ(stream, v1::JOB_STREAM_STDOUT);
    out += data;
  };
  for (size_t i = 0; i < text.size(); i += size) {
    redactor.Add(v1::JOB_STREAM_STDOUT, std::string_view(text).substr(i, size), sink);
  }
  redactor.Finish(sink);
  return out;
}

void ExpectRedacted(const std::vector<std::string_view>& values, const std::string& text,
                    const std::string& want) {
  for (size_t size = 1; size <= text.size(); ++size) {
    ASSERT_EQ(InPieces(values, text, size), want) << size;
  }
  EXPECT_EQ(OutputRedactor(values).Redact(text), want);
}

TEST(OutputRedactorTest, ValuesAreMaskedAcrossPieces) {
  ExpectRedacted({"hunter22"}, "login hunter22, hunter2 hunter22hunter22.",
                 "login ********, hunter2 ****************.");
}

TEST(OutputRedactorTest, OverlappingAndRepeatedValuesAreMasked) {
  ExpectRedacted({"abcabcab", "cabxyz"}, "abcabcabcab abcabcabxyz", "*********** ***********");
  ExpectRedacted({"aaaaaa"}, "aaaaa aaaaaaa", "aaaaa *******");
}

TEST(OutputRedactorTest, LinesOfAValueStayLines) {
  ExpectRedacted({"-----KEY\nabc\nEND-----\n"}, "x\n-----KEY\nabc\nEND-----\ny",
                 "x\n********\n***\n********\ny");
}

TEST(OutputRedactorTest, LineBreakAtTheEndOfAValueDoesNotMatter) {
  ExpectRedacted({"hunter22\r\n"}, "a hunter22 b", "a ******** b");
}

TEST(OutputRedactorTest, Base64AndJsonAreMasked) {
  const std::string value = "p\"ss>>>???word";
  for (const std::string& tail : {"", "\n"}) {
    const std::string encoded = absl::Base64Escape(absl::StrCat(value, tail));
    const std::string redacted = OutputRedactor({value}).Redact(encoded);
    EXPECT_EQ(redacted.substr(0, 16), std::string(16, '*'));
  }
  EXPECT_EQ(OutputRedactor({value}).Redact(absl::WebSafeBase64Escape(value)).substr(0, 16),
            std::string(16, '*'));
  ExpectRedacted({value}, R"({"a":"p\"ss>>>???word"})",
                 absl::StrCat(R"({"a":")", std::string(15, '*'), R"("})"));
}

TEST(OutputRedactorTest, ShortValuesAreNotMasked) {
  ExpectRedacted({"abcde", ""}, "abcde", "abcde");
  ExpectRedacted({}, "abcde", "abcde");
}

TEST(OutputRedactorTest, StreamsAreSeparate) {
  OutputRedactor redactor({"hunter22"});
  std::string out;
  std::string err;
  const auto sink = [&](v1::JobStream stream, std::string_view data) {
    (stream == v1::JOB_STREAM_STDERR ? err : out) += data;
  };
  redactor.Add(v1::JOB_STREAM_STDOUT, "hunt", sink);
  redactor.Add(v1::JOB_STREAM_STDERR, "er22", sink);
  redactor.Add(v1::JOB_STREAM_STDOUT, "er22 ", sink);
  EXPECT_EQ(out, "******** ");
  EXPECT_EQ(err, "er22");
  redactor.Add(v1::JOB_STREAM_STDERR, "hunt", sink);
  EXPECT_EQ(err, "er22") << "it may be the beginning of the value";
  redactor.Finish(sink);
  EXPECT_EQ(err, "er22hunt");
}

TEST(OutputRedactorTest, LargeOutputOfBeginningsOfALargeValueTakesLinearTime) {
  const std::string value = std::string(size_t{64} << 10, 'a') + "b";
  const std::string text(size_t{4} << 20, 'a');
  OutputRedactor redactor({value});
  size_t passed = 0;
  const auto sink = [&](v1::JobStream, std::string_view data) { passed += data.size(); };
  redactor.Add(v1::JOB_STREAM_STDOUT, text, sink);
  EXPECT_GE(passed, text.size() - value.size());
  redactor.Finish(sink);
  EXPECT_EQ(passed, text.size());
}

}  // namespace
}  // namespace muster
