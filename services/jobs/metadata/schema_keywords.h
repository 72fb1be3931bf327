// The keywords of JSON Schema (draft-07).
#ifndef MUSTER_SERVICES_JOBS_METADATA_SCHEMA_KEYWORDS_H_
#define MUSTER_SERVICES_JOBS_METADATA_SCHEMA_KEYWORDS_H_

#include <string_view>

namespace muster {

// What the value of a keyword is.
enum class SchemaKeyword {
  kUnknown,
  kAnnotation,   // has no effect on validation
  kPlain,        // a number, a text, a list or any value
  kSchema,       // a schema for a part of the value
  kSchemas,      // an object of schemas for members of the value
  kCombination,  // a schema, a list or an object of schemas for the value itself
  kUnsupported,
};

SchemaKeyword KindOfKeyword(std::string_view keyword);

}  // namespace muster

#endif  // MUSTER_SERVICES_JOBS_METADATA_SCHEMA_KEYWORDS_H_
