// The documents of a YAML text.
#ifndef MUSTER_SERVICES_COMMON_BASE_YAML_DOCUMENTS_H_
#define MUSTER_SERVICES_COMMON_BASE_YAML_DOCUMENTS_H_

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

namespace muster {

// Parses at most 16 documents; more are a YAML::ParserException, as any other fault. For some
// malformed texts, such as ",", YAML::LoadAll of yaml-cpp 0.7 makes documents without end.
std::vector<YAML::Node> LoadYamlDocuments(const std::string& text);

// Returns the fault in a text, for people: yaml-cpp calls one that is nested too deeply a "bad
// file".
std::string YamlFault(const YAML::Exception& fault);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_BASE_YAML_DOCUMENTS_H_
