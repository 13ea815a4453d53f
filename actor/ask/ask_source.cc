#include "fraktor/actor/ask/ask_source.h"

#include "absl/strings/str_cat.h"

#include "fraktor/utils/strings/string_view.h"

namespace fraktor::inline v0 {

absl::Status UnexpectedAnswer(const MessageType* question, const MessageType* wanted, const MessageType* came) {
  return absl::InvalidArgumentError(absl::StrCat("the answer to ", ToAbsl(question->name()), " is a ",
                                                 ToAbsl(came->name()), ", where a ", ToAbsl(wanted->name()),
                                                 " was asked for"));
}

}  // namespace fraktor::inline v0
