#include "services/common/base/yaml_documents.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>

#include <sstream>

namespace muster {
namespace {

constexpr int kMaxDocuments = 16;

class IgnoreEvents : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

}  // namespace

std::vector<YAML::Node> LoadYamlDocuments(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  IgnoreEvents ignore;
  for (int documents = 0; parser.HandleNextDocument(ignore); ++documents) {
    if (documents == kMaxDocuments) {
      throw YAML::ParserException(YAML::Mark(), "more than 16 documents");
    }
  }
  return YAML::LoadAll(text);
}

std::string YamlFault(const YAML::Exception& fault) {
  const bool deep = dynamic_cast<const YAML::DeepRecursion*>(&fault) != nullptr;
  return deep ? "it is nested too deeply; use fewer levels of lists and maps" : fault.msg;
}

}  // namespace muster
