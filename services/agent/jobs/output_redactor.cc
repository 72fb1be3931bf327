#include "services/agent/jobs/output_redactor.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "nlohmann/json.hpp"
#include "services/common/base/strings.h"
#include "services/common/base/utf8.h"

namespace muster {
namespace {

constexpr char kMask = '*';

size_t IndexOf(v1::JobStream stream) { return stream == v1::JOB_STREAM_STDERR ? 1 : 0; }

// Masks the last `size` bytes, and keeps line breaks.
void MaskEnd(std::string* text, size_t size) {
  for (size_t i = text->size() - size; i < text->size(); ++i) {
    if ((*text)[i] != '\n') (*text)[i] = kMask;
  }
}

}  // namespace

OutputRedactor::OutputRedactor(const std::vector<std::string_view>& values) {
  for (std::string_view value : values) {
    while (value.ends_with('\n') || value.ends_with('\r')) value.remove_suffix(1);
    if (value.size() < kMinRedacted) continue;
    AddForm(std::string(value));
    if (IsUtf8(value)) {
      std::string json = nlohmann::json(value).dump();
      AddForm(json.substr(1, json.size() - 2));
      OPENSSL_cleanse(json.data(), json.size());
    }
    // The last group depends on what follows the value.
    const absl::string_view groups = ToAbsl(value.substr(0, value.size() / 3 * 3));
    AddForm(absl::Base64Escape(groups));
    AddForm(absl::WebSafeBase64Escape(groups));
  }
  for (Stream& stream : streams_) stream.matched.resize(forms_.size());
}

OutputRedactor::~OutputRedactor() {
  for (Form& form : forms_) OPENSSL_cleanse(form.text.data(), form.text.size());
}

void OutputRedactor::AddForm(std::string text) {
  if (std::ranges::any_of(forms_, [&](const Form& form) { return form.text == text; })) return;
  Form form;
  form.next.resize(text.size() + 1);
  for (size_t i = 1; i < text.size(); ++i) {
    uint32_t border = form.next[i];
    while (border > 0 && text[border] != text[i]) border = form.next[border];
    form.next[i + 1] = text[border] == text[i] ? border + 1 : 0;
  }
  form.text = std::move(text);
  forms_.push_back(std::move(form));
}

size_t OutputRedactor::Extend(Stream* stream, std::string_view data) const {
  for (const char byte : data) {
    stream->waiting.push_back(byte);
    for (size_t i = 0; i < forms_.size(); ++i) {
      const Form& form = forms_[i];
      uint32_t& matched = stream->matched[i];
      while (matched > 0 && form.text[matched] != byte) matched = form.next[matched];
      if (form.text[matched] == byte) ++matched;
      if (matched == form.text.size()) {
        MaskEnd(&stream->waiting, matched);
        matched = form.next[matched];
      }
    }
  }
  const auto longest = std::ranges::max_element(stream->matched);
  return stream->waiting.size() - (longest == stream->matched.end() ? 0 : *longest);
}

void OutputRedactor::Add(v1::JobStream name, std::string_view data, Sink sink) {
  // The waiting bytes are at most those of the longest form and this piece.
  constexpr size_t kPiece = size_t{64} << 10;
  Stream& stream = streams_[IndexOf(name)];
  while (!data.empty()) {
    const std::string_view piece = data.substr(0, kPiece);
    data.remove_prefix(piece.size());
    const size_t final = Extend(&stream, piece);
    if (final == 0) continue;
    sink(name, std::string_view(stream.waiting).substr(0, final));
    stream.waiting.erase(0, final);
  }
}

void OutputRedactor::Finish(Sink sink) {
  for (const v1::JobStream name : {v1::JOB_STREAM_STDOUT, v1::JOB_STREAM_STDERR}) {
    Stream& stream = streams_[IndexOf(name)];
    if (!stream.waiting.empty()) sink(name, stream.waiting);
    stream.waiting.clear();
    std::ranges::fill(stream.matched, 0);
  }
}

std::string OutputRedactor::Redact(std::string_view text) const {
  Stream stream;
  stream.matched.resize(forms_.size());
  Extend(&stream, text);
  return stream.waiting;
}

}  // namespace muster
