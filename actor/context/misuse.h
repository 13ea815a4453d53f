// What becomes of a context that is used outside of its actor's turns: without NDEBUG the program ends with a text that
// says so; with it the call is refused where it can be.
//
//   const RefusedMisuse as_with_ndebug;                     // in a test
//   EXPECT_EQ(kept_context->Watch(actor).code(), absl::StatusCode::kFailedPrecondition);
#ifndef FRAKTOR_ACTOR_CONTEXT_MISUSE_H_
#define FRAKTOR_ACTOR_CONTEXT_MISUSE_H_

namespace fraktor::inline v0 {

// Whether the program ends. Any thread.
bool IsMisuseFatal();

// For as long as it lives, misuse is refused, and the program goes on, however it was compiled. One at a time: for tests.
class RefusedMisuse {
 public:
  RefusedMisuse();
  ~RefusedMisuse();
  RefusedMisuse(const RefusedMisuse&) = delete;
  RefusedMisuse& operator=(const RefusedMisuse&) = delete;

 private:
  const bool was_fatal_;
};

}  // namespace fraktor::inline v0

#endif  // FRAKTOR_ACTOR_CONTEXT_MISUSE_H_
