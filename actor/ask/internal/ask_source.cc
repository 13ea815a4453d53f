#include "fraktor/actor/ask/internal/ask_source.h"

#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0::actor_internal {

absl::Status UnexpectedReply(const MessageType* asked, const MessageType* wanted, const MessageType* came) {
  return absl::InvalidArgumentError(absl::StrCat("the reply to ", ToAbsl(asked->name()), " is a ", ToAbsl(came->name()),
                                                 ", but the asker expects a ", ToAbsl(wanted->name())));
}

absl::Status ErrorOfReply(const MessageType* asked, const absl::Status& status) {
  if (!status.ok()) return status;
  return absl::InternalError(absl::StrCat("the reply to ", ToAbsl(asked->name()),
                                          " is an ErrorReply whose status is OK; send an error, or the reply itself"));
}

}  // namespace fraktor::inline v0::actor_internal
