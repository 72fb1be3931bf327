// The keywords of JSON Schema (draft-07).
#ifndef MUSTER_SERVICES_COMMON_TEMPLATES_SCHEMA_KEYWORDS_H_
#define MUSTER_SERVICES_COMMON_TEMPLATES_SCHEMA_KEYWORDS_H_

#include <string_view>

namespace muster {

// The kinds of keywords, by their values.
enum class SchemaKeyword {
  kUnknown,
  // Without an effect on validation.
  kAnnotation,
  // A number, a text, a list or any value.
  kPlain,
  // A schema for a part of the value.
  kSchema,
  // An object of schemas for members of the value.
  kSchemas,
  // A schema, a list or an object of schemas for the value itself.
  kCombination,
  kUnsupported,
};

SchemaKeyword KindOfKeyword(std::string_view keyword);

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_TEMPLATES_SCHEMA_KEYWORDS_H_
