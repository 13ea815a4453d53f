// ErrorReply: a reply that tells the asker why there is no other reply.
//
//   context.Reply(ErrorReply{absl::NotFoundError("there is no box " + open->name)});   // the ask fails with NotFound
//
// Thread safety: a value.
#ifndef FRAKTOR_ACTOR_MESSAGE_ERROR_REPLY_H_
#define FRAKTOR_ACTOR_MESSAGE_ERROR_REPLY_H_

#include "absl/status/status.h"

namespace fraktor::inline v0 {

// Sent in place of a reply. An ask fails with `status`, which must not be OK.
struct ErrorReply {
  absl::Status status;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_MESSAGE_ERROR_REPLY_H_
