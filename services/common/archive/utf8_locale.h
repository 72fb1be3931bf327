// libarchive uses the current locale to convert file names. A service runs in the locale "C", which
// would replace every character beyond ASCII by a question mark.
#ifndef MUSTER_SERVICES_COMMON_ARCHIVE_UTF8_LOCALE_H_
#define MUSTER_SERVICES_COMMON_ARCHIVE_UTF8_LOCALE_H_

#include <clocale>

namespace muster {

// During its lifetime, only the calling thread uses UTF-8 for file names. glibc has this locale
// built in, also in a static binary; with other libraries this class has no effect.
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
