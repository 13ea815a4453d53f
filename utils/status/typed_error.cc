#include "fraktor/utils/status/typed_error.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::status_internal {
namespace {

// A payload is `number`, and then `;key=value` for each detail. `%`, `;`, `=` and bytes that do not
// print are written as %XX. A longer payload is ignored: this code never writes one, so it comes
// from a peer.
constexpr size_t kMaxPayloadBytes = 16 * 1024;

bool IsPlain(char c) { return c > ' ' && c < 0x7f && c != '%' && c != ';' && c != '='; }

void AppendEscaped(std::string& out, std::string_view text) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  for (char c : text) {
    if (IsPlain(c)) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.push_back('%');
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 15]);
    }
  }
}

std::optional<std::string> Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    unsigned byte = 0;
    if (text.size() - i < 3) return std::nullopt;
    const char* const digits = text.data() + i + 1;
    const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
    if (error != std::errc() || end != digits + 2) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    i += 2;
  }
  return out;
}

template <class Number>
std::optional<Number> ParseNumber(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return number;
}

std::optional<std::string> PayloadText(const absl::Status& status, std::string_view type_url) {
  const auto payload = status.GetPayload(ToAbsl(type_url));
  if (!payload.has_value() || payload->size() > kMaxPayloadBytes) return std::nullopt;
  return std::string(*payload);
}

// Removes the text up to the next ';' from `rest`, together with the ';', and returns the text.
std::string_view TakeField(std::string_view& rest) {
  const std::string_view field = rest.substr(0, rest.find(';'));
  rest.remove_prefix(std::min(rest.size(), field.size() + 1));
  return field;
}

}  // namespace

absl::Status MakeTypedError(absl::StatusCode code, std::string_view type_url, uint64_t number, std::string_view text,
                            std::initializer_list<ErrorDetail> details) {
  absl::Status status(code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code, ToAbsl(text));
  std::string payload = std::to_string(number);
  size_t kept = 0;
  for (const ErrorDetail& detail : details) {
    if (kept++ == kMaxErrorDetails) break;
    payload.push_back(';');
    AppendEscaped(payload, detail.key().substr(0, kMaxErrorDetailBytes));
    payload.push_back('=');
    AppendEscaped(payload, detail.value().substr(0, kMaxErrorDetailBytes));
  }
  status.SetPayload(ToAbsl(type_url), absl::Cord(payload));
  return status;
}

std::optional<uint64_t> TypedErrorNumber(const absl::Status& status, std::string_view type_url) {
  const std::optional<std::string> payload = PayloadText(status, type_url);
  if (!payload.has_value()) return std::nullopt;
  std::string_view rest = *payload;
  return ParseNumber<uint64_t>(TakeField(rest));
}

std::optional<std::string> TypedErrorDetail(const absl::Status& status, std::string_view type_url,
                                            std::string_view key) {
  const std::optional<std::string> payload = PayloadText(status, type_url);
  if (!payload.has_value()) return std::nullopt;
  std::string_view rest = *payload;
  TakeField(rest);
  while (!rest.empty()) {
    const std::string_view field = TakeField(rest);
    const size_t equals = field.find('=');
    if (equals == std::string_view::npos) continue;
    if (Unescape(field.substr(0, equals)) == key) return Unescape(field.substr(equals + 1));
  }
  return std::nullopt;
}

std::optional<int64_t> ParseDetailNumber(const std::optional<std::string>& text) {
  if (!text.has_value()) return std::nullopt;
  return ParseNumber<int64_t>(*text);
}

}  // namespace fraktor::inline v0::status_internal
