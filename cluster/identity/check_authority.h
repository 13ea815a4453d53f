// CheckAuthority: options that say where a node is reached.
//
//   FRAKTOR_RETURN_IF_ERROR(CheckAuthority("ClusterOptions::authority", options.authority));
//
// Thread safety: a function of its arguments.
#ifndef FRAKTOR_CLUSTER_IDENTITY_CHECK_AUTHORITY_H_
#define FRAKTOR_CLUSTER_IDENTITY_CHECK_AUTHORITY_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

// InvalidArgument that names the option, unless it is a host and a port by which others can reach it.
inline absl::Status CheckAuthority(std::string_view option, std::string_view authority) {
  const size_t colon = authority.rfind(':');
  uint32_t port = 0;
  if (colon != std::string_view::npos && colon > 0 && absl::SimpleAtoi(ToAbsl(authority.substr(colon + 1)), &port) &&
      port > 0 && port <= 65'535) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(ToAbsl(option), " is \"", ToAbsl(authority),
                                                 "\"; it is how others reach the node: \"host:port\", with a port "
                                                 "from 1 to 65535"));
}

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_CLUSTER_IDENTITY_CHECK_AUTHORITY_H_
