// Whether AddressSanitizer or ThreadSanitizer is part of the build: tests then do less work.
#ifndef FRAKTOR_UTILS_TESTING_SANITIZED_H_
#define FRAKTOR_UTILS_TESTING_SANITIZED_H_

namespace fraktor::inline v0 {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_UTILS_TESTING_SANITIZED_H_
