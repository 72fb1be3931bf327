#include "services/common/identity/result_signature.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/common/base/error.h"
#include "services/common/identity/authority.h"

namespace muster {
namespace {

constexpr char kFleet[] = "fleet-00112233.muster";
constexpr char kRun[] = "0123456789abcdef";

class ResultSignatureTest : public ::testing::Test {
 protected:
  ResultSignatureTest()
      : root_(*FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_)),
        intermediate_key_(*PrivateKey::Generate()),
        intermediate_(*Intermediate::Load(
            kFleet, intermediate_key_,
            *root_.SignIntermediate(intermediate_key_.public_key(), now_), root_.certificate())),
        authority_(*intermediate_.CreateRunAuthority(kRun, now_, now_ + absl::Hours(2))) {}

  std::string ChainFor(const RunName& name) {
    const Certificate leaf = *authority_.Issue(name, key_.public_key(), {}, now_);
    return ChainToPem(
        std::vector<Certificate>{leaf, authority_.fleet_signed(), intermediate_.certificate()});
  }

  absl::Status Verify(const std::string& signature, const std::string& chain,
                      const SignedResult& result) {
    return VerifyResultSignature(signature, chain, result, kFleet, root_.certificate(), now_);
  }

  const absl::Time now_ = absl::Now();
  const FleetRoot root_;
  const PrivateKey intermediate_key_;
  const Intermediate intermediate_;
  const RunAuthority authority_;
  const PrivateKey key_ = *PrivateKey::Generate();
  const SignedResult result_ = {
      kRun, "facts", "n1", 1, 3, std::string(32, '\x07'), false, "application/json", "facts.json"};
};

TEST_F(ResultSignatureTest, SignatureOfTheNodeIsAccepted) {
  const std::string signature = *SignResult(key_, result_);
  EXPECT_TRUE(Verify(signature, ChainFor(RunNodeIdentity{kRun, "facts", "n1"}), result_).ok());
  EXPECT_TRUE(Verify(signature, ChainFor(RunPluginIdentity{kRun, "facts"}), result_).ok());
}

TEST_F(ResultSignatureTest, ChangedResultIsRefused) {
  const std::string signature = *SignResult(key_, result_);
  const std::string chain = ChainFor(RunNodeIdentity{kRun, "facts", "n1"});
  SignedResult changed = result_;
  changed.sha256[0] = 'x';
  EXPECT_EQ(ReasonOf(Verify(signature, chain, changed)), "INVALID_SIGNATURE");
  changed = result_;
  changed.attempt = 2;
  EXPECT_EQ(ReasonOf(Verify(signature, chain, changed)), "INVALID_SIGNATURE");
  changed = result_;
  changed.is_error = true;
  EXPECT_EQ(ReasonOf(Verify(signature, chain, changed)), "INVALID_SIGNATURE");
  changed = result_;
  changed.media_type = "application/gzip";
  EXPECT_EQ(ReasonOf(Verify(signature, chain, changed)), "INVALID_SIGNATURE");
  changed = result_;
  changed.file_name = "other.json";
  EXPECT_EQ(ReasonOf(Verify(signature, chain, changed)), "INVALID_SIGNATURE");
}

TEST_F(ResultSignatureTest, TextIsAsTheApiSpecifies) {
  SignedResult result = result_;
  result.media_type = "text/plain";
  result.file_name = "caf\xc3\xa9\n.txt";
  const std::string sha256(64, '0');
  result.sha256 = std::string(32, '\0');
  EXPECT_EQ(ResultSignatureText(result),
            absl::StrCat("muster-result-v1\n", kRun, "\nfacts\nn1\n1\n3\n", sha256,
                         "\nresult\n10\ntext/plain\n10\ncaf\xc3\xa9\n.txt\n"));
  result.media_type = result.file_name = "";
  EXPECT_THAT(ResultSignatureText(result), ::testing::EndsWith("\nresult\n0\n\n0\n\n"));
}

// A part of one field cannot be presented as a part of the next one.
TEST_F(ResultSignatureTest, TextsOfDifferentResultsDiffer) {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"a", "b"},      {"ab", ""},        {"", "ab"},         {"a\n1\nb", ""},
      {"", "a\n1\nb"}, {"a\n", "b"},      {"a", "\nb"},       {"a\n1", "b"},
      {"1\na", "b"},   {"a\n1\nb\n", ""}, {"a\n1\nb\n0", ""}, {std::string("a\0", 2), "b"}};
  std::set<std::string> seen;
  for (const auto& [media_type, file_name] : texts) {
    SignedResult result = result_;
    result.media_type = media_type;
    result.file_name = file_name;
    EXPECT_TRUE(seen.insert(ResultSignatureText(result)).second) << media_type << "|" << file_name;
  }
}

TEST_F(ResultSignatureTest, SignatureOfAnotherNodeIsRefused) {
  const std::string signature = *SignResult(key_, result_);
  const absl::Status status =
      Verify(signature, ChainFor(RunNodeIdentity{kRun, "facts", "n2"}), result_);
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(ResultSignatureTest, ForeignChainIsRefused) {
  const FleetRoot other = *FleetRoot::Create(kFleet, *PrivateKey::Generate(), now_);
  const std::string signature = *SignResult(key_, result_);
  EXPECT_FALSE(VerifyResultSignature(signature, ChainFor(RunNodeIdentity{kRun, "facts", "n1"}),
                                     result_, kFleet, other.certificate(), now_)
                   .ok());
}

}  // namespace
}  // namespace muster
