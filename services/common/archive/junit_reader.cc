#include "services/common/archive/junit_reader.h"

#include <expat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "services/common/base/strings.h"

namespace muster {
namespace {

constexpr size_t kMaxText = 64 * 1024;
constexpr int kMaxDepth = 100;
constexpr size_t kEncodingBytes = 4;             // for the detection of the encoding
constexpr size_t kMaxPiece = size_t{64} << 10;   // the largest piece for one call of expat
constexpr int64_t kMaxToken = int64_t{8} << 20;  // a tag or comment, which expat buffers

std::string Attribute(const char** attributes, std::string_view name) {
  for (const char** a = attributes; *a != nullptr; a += 2) {
    if (name == a[0]) return CutText(a[1], kMaxText);
  }
  return "";
}

// Ignores a prefix ("x:testcase").
std::string_view LocalName(const char* name) {
  const std::string_view whole(name);
  return whole.substr(whole.rfind(':') + 1);
}

}  // namespace

void JunitReader::Free::operator()(XML_ParserStruct* parser) const { XML_ParserFree(parser); }

JunitReader::JunitReader(std::string_view file, ItemBudget& budget)
    : file_(file), budget_(budget), parser_(XML_ParserCreate(nullptr)), suites_(budget) {
  XML_SetUserData(parser_.get(), this);
  XML_SetElementHandler(
      parser_.get(),
      [](void* self, const char* name, const char** attributes) {
        static_cast<JunitReader*>(self)->Start(LocalName(name), attributes);
      },
      [](void* self, const char* name) { static_cast<JunitReader*>(self)->End(LocalName(name)); });
  XML_SetCharacterDataHandler(parser_.get(), [](void* self, const char* text, int size) {
    static_cast<JunitReader*>(self)->Text({text, static_cast<size_t>(size)});
  });
}

JunitReader::~JunitReader() = default;

void JunitReader::Stop(std::string_view why) {
  error_ = std::string(why);
  XML_StopParser(parser_.get(), XML_FALSE);
}

// expat detects the encoding in the first piece, also if that has one byte.
void JunitReader::Write(std::string_view data) {
  if (fed_ > 0) return Parse(data);
  const size_t missing = std::min(kEncodingBytes - start_.size(), data.size());
  start_.append(data.substr(0, missing));
  if (start_.size() < kEncodingBytes) return;
  Parse(start_);
  Parse(data.substr(missing));
}

void JunitReader::Parse(std::string_view data) {
  while (error_.empty() && !data.empty()) {
    const std::string_view piece = data.substr(0, kMaxPiece);
    data.remove_prefix(piece.size());
    fed_ += static_cast<int64_t>(piece.size());
    if (XML_Parse(parser_.get(), piece.data(), static_cast<int>(piece.size()), XML_FALSE) !=
            XML_STATUS_OK &&
        error_.empty()) {
      error_ = absl::StrCat("line ", XML_GetCurrentLineNumber(parser_.get()), ": ",
                            XML_ErrorString(XML_GetErrorCode(parser_.get())));
    }
    if (error_.empty() && fed_ - XML_GetCurrentByteIndex(parser_.get()) > kMaxToken) {
      error_ = absl::StrCat("a tag or comment is longer than ", kMaxToken, " bytes");
    }
  }
}

ResultItem JunitReader::Finish() {
  if (fed_ == 0) Parse(start_);
  if (error_.empty() && XML_Parse(parser_.get(), "", 0, XML_TRUE) != XML_STATUS_OK &&
      error_.empty()) {
    error_ =
        absl::StrCat("it ends in the middle, at line ", XML_GetCurrentLineNumber(parser_.get()),
                     " (", XML_ErrorString(XML_GetErrorCode(parser_.get())), ")");
  }
  if (!error_.empty()) {
    return UnknownFileItem(
        file_, absl::StrCat("cannot be read as JUnit XML after ", cases_seen_, " cases: ", error_));
  }
  if (cases_seen_ == 0) return UnknownFileItem(file_, "JUnit XML without a test case");
  ResultItem item = FileItem(file_, kPassed);
  item.items = suites_.Finish();
  return item;
}

void JunitReader::Start(std::string_view element, const char** attributes) {
  if (++depth_ > kMaxDepth) return Stop("elements are nested too deeply");
  if (depth_ == 1 && element != "testsuite" && element != "testsuites") {
    return Stop(absl::StrCat("it begins with <", ToAbsl(element), ">"));
  }
  if (in_case_) {
    if (element == "skipped") case_skipped_ = true;
    if (element == "failure" || element == "error") case_failed_ = true;
    if (element == "failure" || element == "error" || element == "system-out" ||
        element == "system-err") {
      text_of_ = std::string(element);
      text_ = Attribute(attributes, "message");
      if (!text_.empty()) text_ += ' ';
    }
  } else if (element == "testsuite") {
    StartSuite(attributes);
  } else if (element == "testcase" && !open_suites_.empty()) {
    StartCase(attributes);
  }
}

void JunitReader::Text(std::string_view text) {
  if (text_of_.empty()) return;
  const size_t room = kMaxText - std::min(kMaxText, text_.size());
  text_.append(text.substr(0, room));
  text_dropped_ += text.size() - std::min(text.size(), room);
}

void JunitReader::End(std::string_view element) {
  --depth_;
  if (in_case_) {
    if (!text_of_.empty() && element == text_of_) {
      std::string text(absl::StripAsciiWhitespace(text_));
      if (text_dropped_ > 0) {
        absl::StrAppend(&text, " [", text_dropped_, " more bytes: see the file]");
      }
      if (!text.empty()) case_.details[text_of_] = std::move(text);
      text_of_.clear();
      text_.clear();
      text_dropped_ = 0;
    } else if (element == "testcase") {
      EndCase();
    }
  } else if (element == "testsuite" && !open_suites_.empty()) {
    EndSuite();
  }
}

void JunitReader::StartSuite(const char** attributes) {
  ++suites_seen_;
  Suite suite{.item = {}, .cases = BoundedItems(budget_)};
  suite.item.name = Attribute(attributes, "name");
  if (suite.item.name.empty()) suite.item.name = absl::StrFormat("testsuite-%03d", suites_seen_);
  open_suites_.push_back(std::move(suite));
}

void JunitReader::EndSuite() {
  Suite suite = std::move(open_suites_.back());
  open_suites_.pop_back();
  suite.item.items = suite.cases.Finish();
  suite.item.status =
      std::string(kPassed);  // remains for a suite without cases; otherwise RollUp replaces it
  suites_.Add(std::move(suite.item));
}

void JunitReader::StartCase(const char** attributes) {
  in_case_ = true;
  case_skipped_ = false;
  case_failed_ = false;
  case_ = ResultItem{.name = Attribute(attributes, "name")};
}

void JunitReader::EndCase() {
  in_case_ = false;
  ++cases_seen_;
  case_.status = std::string(case_skipped_ ? kSkipped : case_failed_ ? kFailed : kPassed);
  open_suites_.back().cases.Add(std::move(case_));
}

}  // namespace muster
