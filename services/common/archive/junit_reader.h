// Reads JUnit XML as Ginkgo, pytest, Maven and others write it.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_JUNIT_READER_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_JUNIT_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/archive/result_reader.h"

struct XML_ParserStruct;

namespace muster {

// Reads one <testsuite>, or <testsuites> with any number of them; nested suites become siblings. A
// case is skipped if it has a <skipped>, otherwise failed if it has a <failure> or <error>,
// otherwise passed. Its details contain these texts (the attribute "message" before the content),
// system-out and system-err, each up to 64 KiB. Entities are expanded within expat's limits.
class JunitReader : public ResultReader {
 public:
  JunitReader(std::string_view file, ItemBudget& budget);
  ~JunitReader() override;

  void Write(std::string_view data) override;
  ResultItem Finish() override;

 private:
  void Parse(std::string_view data);

  struct Suite {
    ResultItem item;
    BoundedItems cases;
  };

  void Start(std::string_view element, const char** attributes);
  void End(std::string_view element);
  void Text(std::string_view text);
  void StartSuite(const char** attributes);
  void EndSuite();
  void StartCase(const char** attributes);
  void EndCase();
  void Stop(std::string_view why);

  struct Free {
    void operator()(XML_ParserStruct* parser) const;
  };

  const std::string file_;
  ItemBudget& budget_;
  std::unique_ptr<XML_ParserStruct, Free> parser_;
  std::string error_;        // set when the rest of the file cannot be read
  std::string start_;        // the first bytes, until there are enough to detect the encoding
  int64_t fed_ = 0;          // bytes passed to expat
  int depth_ = 0;            // of open elements
  int64_t suites_seen_ = 0;  // numbers the suites without a name
  int64_t cases_seen_ = 0;
  std::vector<Suite> open_suites_;
  BoundedItems suites_;
  bool in_case_ = false;
  bool case_skipped_ = false;
  bool case_failed_ = false;
  ResultItem case_;
  std::string text_of_;      // the detail for character data, or empty
  std::string text_;         // its text so far
  size_t text_dropped_ = 0;  // bytes beyond the limit
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_JUNIT_READER_H_
