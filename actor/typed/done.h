// Done: the answer of a handler that has nothing to say but that all went well. An error is the answer otherwise.
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
// Why not `using Reply = absl::Status`: a handler that returns a Status speaks of its actor, whose failure an error is,
// and an ask comes to a StatusOr in any case. So that does not compile.
#ifndef FRAKTOR_ACTOR_TYPED_DONE_H_
#define FRAKTOR_ACTOR_TYPED_DONE_H_

namespace fraktor::inline v0 {

struct Done {
  friend constexpr bool operator==(Done, Done) { return true; }
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_TYPED_DONE_H_
