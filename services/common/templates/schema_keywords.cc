#include "services/common/templates/schema_keywords.h"

#include <map>

namespace muster {

SchemaKeyword KindOfKeyword(std::string_view keyword) {
  using enum SchemaKeyword;
  static const auto* const kinds = new std::map<std::string_view, SchemaKeyword>{
      {"$comment", kAnnotation},
      {"contentEncoding", kAnnotation},
      {"contentMediaType", kAnnotation},
      {"default", kAnnotation},
      {"description", kAnnotation},
      {"examples", kAnnotation},
      {"format", kAnnotation},
      {"readOnly", kAnnotation},
      {"title", kAnnotation},
      {"writeOnly", kAnnotation},
      {"const", kPlain},
      {"enum", kPlain},
      {"exclusiveMaximum", kPlain},
      {"exclusiveMinimum", kPlain},
      {"maxItems", kPlain},
      {"maxLength", kPlain},
      {"maxProperties", kPlain},
      {"maximum", kPlain},
      {"minItems", kPlain},
      {"minLength", kPlain},
      {"minProperties", kPlain},
      {"minimum", kPlain},
      {"multipleOf", kPlain},
      {"pattern", kPlain},
      {"required", kPlain},
      {"type", kPlain},
      {"uniqueItems", kPlain},
      {"additionalProperties", kSchema},
      {"items", kSchema},
      {"properties", kSchemas},
      {"allOf", kCombination},
      {"anyOf", kCombination},
      {"contains", kCombination},
      {"dependencies", kCombination},
      {"else", kCombination},
      {"if", kCombination},
      {"not", kCombination},
      {"oneOf", kCombination},
      {"propertyNames", kCombination},
      {"then", kCombination},
      {"$id", kUnsupported},
      {"$schema", kUnsupported},
      {"additionalItems", kUnsupported},
      {"definitions", kUnsupported},
      {"patternProperties", kUnsupported},
  };
  const auto found = kinds->find(keyword);
  return found == kinds->end() ? kUnknown : found->second;
}

}  // namespace muster
