#include "services/status/board/work_texts.h"

#include <algorithm>
#include <array>
#include <string>

#include "services/common/base/utf8.h"

namespace muster {
namespace {

using Names = google::protobuf::RepeatedPtrField<std::string>;

constexpr size_t kFreeText = 256;    // each text may be so long in any case
constexpr size_t kBytesOfName = 48;  // in addition to its characters
constexpr std::string_view kCut = "…";

// The texts of a pair but for names, the most important first; null if it has none.
std::array<std::string*, 5> Texts(Work& work) {
  v1::Fault* const fault = work.fault.get();
  return {fault == nullptr ? nullptr : fault->mutable_message(),
          fault == nullptr ? nullptr : fault->mutable_next_step(),
          fault == nullptr ? nullptr : fault->mutable_address(), &work.message,
          work.progress == nullptr ? nullptr : work.progress->mutable_message()};
}

size_t CostOf(const std::string* text) {
  return text == nullptr || text->size() <= kFreeText ? 0 : text->size() - kFreeText;
}

size_t CostOf(const Names& names) {
  size_t cost = 0;
  for (const std::string& name : names) cost += name.size() + kBytesOfName;
  return cost;
}

size_t CostOf(Work& work) {
  size_t cost = 0;
  for (const std::string* text : Texts(work)) cost += CostOf(text);
  if (work.progress == nullptr) return cost;
  return cost + CostOf(work.progress->failures()) + CostOf(work.progress->errors());
}

// Removes the oldest names until the others take at most `*left` bytes, which it reduces. Returns
// how many were removed.
int KeepNewest(Names* names, size_t* left) {
  int first = names->size();
  while (first > 0 && names->Get(first - 1).size() + kBytesOfName <= *left) {
    --first;
    *left -= names->Get(first).size() + kBytesOfName;
  }
  names->DeleteSubrange(0, first);
  return first;
}

// Shortens the texts until they cost at most `left` bytes.
void Shorten(Work& work, size_t left) {
  for (std::string* text : Texts(work)) {
    const size_t cost = CostOf(text);
    if (cost > left) {
      text->resize(CutUtf8(*text, kFreeText - kCut.size()).size());
      text->append(kCut);
    } else {
      left -= cost;
    }
  }
  if (work.progress == nullptr) return;
  v1::Progress& progress = *work.progress;
  progress.set_omitted_failures(progress.omitted_failures() +
                                KeepNewest(progress.mutable_failures(), &left));
  progress.set_omitted_errors(progress.omitted_errors() +
                              KeepNewest(progress.mutable_errors(), &left));
}

}  // namespace

bool FitTexts(Pair& pair, TextBudget& run) {
  Work& work = *pair.work;
  PluginTexts& texts = pair.plugin->texts;
  const size_t before = work.text_bytes;
  const size_t wanted = CostOf(work);
  work.text_bytes = texts.Resize(before, wanted, run);
  if (work.text_bytes < wanted) {
    Shorten(work, work.text_bytes);
    work.text_bytes = texts.Resize(work.text_bytes, CostOf(work), run);
    run.CountShortened();
  }
  return work.text_bytes != before;
}

}  // namespace muster
