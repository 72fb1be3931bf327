#include "services/common/identity/target_set.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "services/common/base/secret_file.h"
#include "services/common/base/sha256.h"

namespace muster {
namespace {

std::vector<std::string> Names(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(absl::StrCat("n", 1000 + i));
  return names;
}

TEST(TargetSetTest, NamesAreSortedAndUnique) {
  const TargetSet set({"b", "a", "b"});
  EXPECT_EQ(set.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(set.root(), TargetSet({"a", "b"}).root());
  EXPECT_EQ(TargetSet({}).size(), 0u);
  EXPECT_EQ(TargetSet({}).root(), "");
}

TEST(TargetSetTest, TreeMatchesApi) {
  const auto sha = [](const std::string& text) { return DigestBytes(Sha256::Of(text)); };
  const std::string a = sha(std::string("\0a", 2));
  const std::string b = sha(std::string("\0b", 2));
  const std::string c = sha(std::string("\0c", 2));
  EXPECT_EQ(TargetSet({"a"}).root(), a);
  EXPECT_EQ(TargetSet({"a", "b", "c"}).root(), sha("\1" + sha("\1" + a + b) + c));
}

// Go has its own implementation (gateway/command), tested with the same vectors.
TEST(TargetSetTest, RootsMatchTheTestVectors) {
  const auto text =
      ReadFileBounded("services/common/identity/testdata/target_sets.txt", size_t{1} << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  int vectors = 0;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(*text, '\n', absl::SkipEmpty()))) {
    if (line.front() == '#') continue;
    std::vector<std::string> names = absl::StrSplit(line, ' ');
    const std::string root = names.front();
    names.erase(names.begin());
    EXPECT_EQ(ToHex(TargetSet(names).root()), root) << line;
    ++vectors;
  }
  EXPECT_GE(vectors, 5);
}

TEST(TargetSetTest, EveryNameOfASetOfAnySizeHasAProof) {
  for (const int count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 33, 100}) {
    const TargetSet set(Names(count));
    for (int i = 0; i < count; ++i) {
      const std::vector<std::string> proof = set.Proof(i);
      EXPECT_TRUE(VerifyTarget(set.names()[i], i, count, proof, set.root())) << count << " " << i;
      EXPECT_FALSE(VerifyTarget("other", i, count, proof, set.root())) << count << " " << i;
    }
  }
}

TEST(TargetSetTest, ProofIsValidOnlyForItsNameIndexAndSet) {
  const TargetSet set(Names(7));
  const std::vector<std::string> proof = set.Proof(2);
  const std::string name = set.names()[2];
  EXPECT_FALSE(VerifyTarget(name, 3, 7, proof, set.root()));
  EXPECT_FALSE(VerifyTarget(name, 2, 3, proof, set.root()));
  EXPECT_FALSE(VerifyTarget(name, 2, 7, proof, TargetSet(Names(8)).root()));
  EXPECT_FALSE(VerifyTarget(set.names()[3], 2, 7, proof, set.root()));
}

TEST(TargetSetTest, InvalidArgumentsAreRefused) {
  const TargetSet set(Names(4));
  std::vector<std::string> proof = set.Proof(1);
  const std::string name = set.names()[1];
  EXPECT_FALSE(VerifyTarget(name, -1, 4, proof, set.root()));
  EXPECT_FALSE(VerifyTarget(name, 4, 4, proof, set.root()));
  EXPECT_FALSE(VerifyTarget(name, 0, 0, proof, set.root()));
  EXPECT_FALSE(VerifyTarget(name, 1, std::numeric_limits<int64_t>::max(), proof, set.root()));
  proof.push_back(proof.back());
  EXPECT_FALSE(VerifyTarget(name, 1, 4, proof, set.root())) << "longer than the way up";
  proof.resize(1);
  EXPECT_FALSE(VerifyTarget(name, 1, 4, proof, set.root())) << "shorter than the way up";
  EXPECT_FALSE(VerifyTarget(name, 1, 4, {}, set.root()));
}

TEST(TargetSetTest, InnerNodeIsNotAName) {
  // With equal prefixes, the two leaves under the root would be the name of a single target.
  const TargetSet set({"a", "b"});
  const std::string inside = set.Proof(1)[0] + set.Proof(0)[0];
  EXPECT_FALSE(VerifyTarget(inside, 0, 1, {}, set.root()));
}

}  // namespace
}  // namespace muster
