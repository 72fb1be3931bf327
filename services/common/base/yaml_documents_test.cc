#include "services/common/base/yaml_documents.h"

#include <string>

#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(LoadYamlDocumentsTest, DocumentsAreReturnedInOrder) {
  const auto documents = LoadYamlDocuments("a: 1\n---\nb: 2\n");
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[1]["b"].as<int>(), 2);
}

TEST(LoadYamlDocumentsTest, EmptyTextHasNoDocument) {
  EXPECT_TRUE(LoadYamlDocuments("# a comment\n").empty());
}

TEST(LoadYamlDocumentsTest, MalformedTextEnds) {
  EXPECT_THROW(LoadYamlDocuments(","), YAML::ParserException);
}

TEST(LoadYamlDocumentsTest, ManyDocumentsAreRefused) {
  std::string text;
  for (int i = 0; i < 17; ++i) text += "---\na: 1\n";
  EXPECT_THROW(LoadYamlDocuments(text), YAML::ParserException);
}

TEST(YamlFaultTest, DeepNestingIsNamed) {
  try {
    LoadYamlDocuments(std::string(10'000, '['));
    FAIL();
  } catch (const YAML::Exception& fault) {
    EXPECT_EQ(YamlFault(fault), "it is nested too deeply; use fewer levels of lists and maps");
  }
}

TEST(YamlFaultTest, OtherFaultsAreThoseOfTheParser) {
  try {
    LoadYamlDocuments("a: [");
    FAIL();
  } catch (const YAML::Exception& fault) {
    EXPECT_EQ(YamlFault(fault), fault.msg);
  }
}

}  // namespace
}  // namespace muster
