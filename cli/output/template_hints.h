// Next steps after a template type or a template is stored, for people. All functions take
// documents, and return an empty text if one of them cannot be read: it may be of a newer service.
#ifndef MUSTER_CLI_OUTPUT_TEMPLATE_HINTS_H_
#define MUSTER_CLI_OUTPUT_TEMPLATE_HINTS_H_

#include <string>

namespace muster::cli {

// Returns the line that deploys a type alone, with its required parameters and secrets: "Deploy it:
// muster deploy FOLDER --type shell@1.0.0 --node NODE --set name=VALUE --wait". The reader replaces
// the words in capitals. If its templates are built, returns the line that builds one instead.
std::string TypeHint(const std::string& type_document);

// Returns the line that deploys a template of a type in the same way.
std::string DeployHint(const std::string& type_document, const std::string& template_document);

// Returns the lines for a template that was stored without files; `file` has its document. They
// warn if its type has a folder for files.
std::string TemplateHint(const std::string& type_document, const std::string& template_document,
                         const std::string& file);

// Returns "It adds the parameter nmae to those of site@1.0.0; did you mean name?", a line for each
// parameter that the template has and its type does not; empty if there are none. A template may
// add parameters, but a misspelt name is one of these, too.
std::string AddedParameters(const std::string& type_document, const std::string& template_document);

}  // namespace muster::cli

#endif  // MUSTER_CLI_OUTPUT_TEMPLATE_HINTS_H_
