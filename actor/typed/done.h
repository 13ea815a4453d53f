// Done: the reply of a handler whose success has no content. A failure is an error as the reply.
//
//   struct Save { using Reply = Done; std::string text; };
//
//   absl::StatusOr<Done> On(Context&, const Save& save) {                  // or Task<Done>
//     if (save.text.empty()) return absl::InvalidArgumentError("there is nothing to save");
//     return Done{};
//   }
//
//   absl::Status saved = system.AskAndWait(file, Save{"text"}, absl::Seconds(1)).status();
//
// `using Reply = absl::Status` does not compile: the Status that a handler returns is about its
// actor, where an error is a failure, and an ask has a StatusOr as its result in any case.
#ifndef FRAKTOR_ACTOR_TYPED_DONE_H_
#define FRAKTOR_ACTOR_TYPED_DONE_H_

namespace fraktor::inline v0 {

struct Done {
  friend constexpr bool operator==(Done, Done) { return true; }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_DONE_H_
