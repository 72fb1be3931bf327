// libarchive reads the current locale to translate file names, and a service runs in "C", where
// every letter beyond ASCII would become a question mark.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_UTF8_LOCALE_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_UTF8_LOCALE_H_

#include <clocale>

namespace muster {

// While it lives, the calling thread (it alone) has UTF-8 file names. glibc has this locale built
// in, also in a static binary without any file of the system; elsewhere it does nothing.
class Utf8Locale {
 public:
  Utf8Locale() {
    static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (utf8 != nullptr) previous_ = uselocale(utf8);
  }
  ~Utf8Locale() {
    if (previous_ != nullptr) uselocale(previous_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t previous_ = nullptr;
};

}  // namespace muster

#endif  // MUSTER_SERVICES_COMMON_ARCHIVE_UTF8_LOCALE_H_
