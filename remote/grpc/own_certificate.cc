#include "fraktor/remote/grpc/own_certificate.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {
namespace {

// DER: a tag, a length, and so many bytes. Tags of X.509 have one byte.
constexpr uint8_t kSequence = 0x30;
constexpr uint8_t kOctets = 0x04;
constexpr uint8_t kObject = 0x06;
constexpr uint8_t kUtcTime = 0x17;
constexpr uint8_t kGeneralizedTime = 0x18;
constexpr uint8_t kVersion = 0xa0;
constexpr uint8_t kExtensions = 0xa3;
constexpr uint8_t kHost = 0x82;
constexpr uint8_t kAddress = 0x87;
constexpr std::string_view kSubjectAltName = "\x55\x1d\x11";

struct Item {
  uint8_t tag = 0;
  std::string_view body = {};
};

class DerReader {
 public:
  explicit DerReader(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  uint8_t next_tag() const { return rest_.empty() ? 0 : static_cast<uint8_t>(rest_[0]); }
  // None at the end, and if the bytes are no item.
  std::optional<Item> Next() {
    if (rest_.size() < 2) return std::nullopt;
    const uint8_t tag = next_tag();
    size_t length = static_cast<uint8_t>(rest_[1]);
    size_t at = 2;
    if (length >= 0x80) {
      const size_t bytes = length & 0x7f;
      if (bytes == 0 || bytes > 4 || rest_.size() < 2 + bytes) return std::nullopt;
      length = 0;
      for (; at < 2 + bytes; ++at) length = length << 8 | static_cast<uint8_t>(rest_[at]);
    }
    if (length > rest_.size() - at) return std::nullopt;
    const Item item{tag, rest_.substr(at, length)};
    rest_.remove_prefix(at + length);
    return item;
  }
  // The next one, if it has this tag.
  std::optional<std::string_view> Next(uint8_t tag) {
    const std::optional<Item> item = next_tag() == tag ? Next() : std::nullopt;
    if (!item.has_value()) return std::nullopt;
    return item->body;
  }

 private:
  std::string_view rest_;
};

absl::Status Unreadable() { return absl::InvalidArgumentError("the certificate of this node is none of X.509 in PEM"); }

// "261117093000Z", or with a year of four digits.
std::optional<absl::Time> ReadTime(const std::optional<Item>& item) {
  if (!item.has_value()) return std::nullopt;
  std::string text(item->body);
  if (item->tag == kUtcTime) {
    if (text.empty()) return std::nullopt;
    text = absl::StrCat(text[0] < '5' ? "20" : "19", text);
  } else if (item->tag != kGeneralizedTime) {
    return std::nullopt;
  }
  absl::Time time;
  std::string error;
  if (!absl::ParseTime("%E4Y%m%d%H%M%SZ", text, &time, &error)) return std::nullopt;
  return time;
}

void ReadNames(std::string_view octets, std::vector<std::string>& names) {
  DerReader reader(octets);
  DerReader all(reader.Next(kSequence).value_or(std::string_view()));
  while (const std::optional<Item> name = all.Next()) {
    if (name->tag == kHost) names.emplace_back(name->body);
    if (name->tag != kAddress) continue;
    char text[INET6_ADDRSTRLEN];
    const int family = name->body.size() == sizeof(in_addr) ? AF_INET : AF_INET6;
    if (family == AF_INET6 && name->body.size() != sizeof(in6_addr)) continue;
    if (inet_ntop(family, name->body.data(), text, sizeof text) != nullptr) names.emplace_back(text);
  }
}

bool IsFor(std::string_view name, const std::string& host) {
  const std::string pattern = absl::AsciiStrToLower(ToAbsl(name));
  if (pattern == host) return true;
  const size_t dot = host.find('.');
  return pattern.substr(0, 2) == "*." && dot != std::string::npos && dot > 0 && host.substr(dot) == pattern.substr(1);
}

}  // namespace

absl::StatusOr<OwnCertificate> ReadOwnCertificate(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  const size_t begin = pem.find(kBegin);
  const size_t end = begin == std::string_view::npos ? begin : pem.find("-----END", begin);
  if (end == std::string_view::npos) return Unreadable();
  std::string bytes;
  // White space in it does not matter.
  if (!absl::Base64Unescape(ToAbsl(pem.substr(begin + kBegin.size(), end - begin - kBegin.size())), &bytes)) {
    return Unreadable();
  }
  DerReader outer(DerReader(bytes).Next(kSequence).value_or(std::string_view()));
  DerReader reader(outer.Next(kSequence).value_or(std::string_view()));
  if (reader.next_tag() == kVersion) reader.Next();
  for (int i = 0; i < 3; ++i) reader.Next();  // The number, how it is signed, and by whom.
  DerReader validity(reader.Next(kSequence).value_or(std::string_view()));
  const std::optional<absl::Time> not_before = ReadTime(validity.Next());
  const std::optional<absl::Time> not_after = ReadTime(validity.Next());
  if (!not_before.has_value() || !not_after.has_value()) return Unreadable();
  OwnCertificate read{.not_before = *not_before, .not_after = *not_after};
  while (!reader.empty() && reader.next_tag() != kExtensions && reader.Next().has_value()) {
  }
  DerReader tagged(reader.Next(kExtensions).value_or(std::string_view()));
  DerReader extensions(tagged.Next(kSequence).value_or(std::string_view()));
  while (const std::optional<Item> extension = extensions.Next()) {
    DerReader parts(extension->body);
    if (parts.Next(kObject) != kSubjectAltName) continue;
    while (!parts.empty() && parts.next_tag() != kOctets && parts.Next().has_value()) {
    }
    ReadNames(parts.Next(kOctets).value_or(std::string_view()), read.names);
  }
  return read;
}

std::vector<std::string> TroublesOf(const OwnCertificate& certificate, std::string_view host, absl::Time now) {
  std::vector<std::string> troubles;
  const auto date = [](absl::Time time) {
    return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
  };
  if (now > certificate.not_after) {
    troubles.push_back(absl::StrCat("the certificate of this node has expired at ", date(certificate.not_after),
                                    ": peers will refuse it; put a new one in its place, which is used at once"));
  } else if (now < certificate.not_before) {
    troubles.push_back(absl::StrCat("the certificate of this node begins at ", date(certificate.not_before),
                                    ": peers will refuse it until then; is the clock of this machine right?"));
  }
  std::string bare = absl::AsciiStrToLower(ToAbsl(host));
  if (bare.size() > 2 && bare.front() == '[') bare = bare.substr(1, bare.size() - 2);
  const bool is_for_host = std::any_of(certificate.names.begin(), certificate.names.end(),
                                       [&](const std::string& name) { return IsFor(name, bare); });
  if (!is_for_host) {
    troubles.push_back(absl::StrCat("the certificate of this node is for [", absl::StrJoin(certificate.names, ", "),
                                    "], and the node calls itself ", bare,
                                    ": peers will refuse it; add the host to the names of the certificate (subject ",
                                    "alternative names), or set the host of the node to one of them"));
  }
  return troubles;
}

}  // namespace fraktor::inline v0
