// RefusedMisuse: lets a test use a context outside of its actor's turns. Without NDEBUG such misuse
// ends the program with an error text; with NDEBUG the call is refused, if it can return an error.
//
//   const RefusedMisuse as_with_ndebug;                              // in a test
//   EXPECT_EQ(kept_context->Watch(actor).code(), absl::StatusCode::kFailedPrecondition);
#ifndef FRAKTOR_ACTOR_CONTEXT_INTERNAL_MISUSE_H_
#define FRAKTOR_ACTOR_CONTEXT_INTERNAL_MISUSE_H_

namespace fraktor::inline v0::actor_internal {

// True if misuse ends the program. Any thread.
bool IsMisuseFatal();

// While it lives, misuse is refused as with NDEBUG, however the program was compiled. For tests; at
// most one at a time.
class RefusedMisuse {
 public:
  RefusedMisuse();
  ~RefusedMisuse();
  RefusedMisuse(const RefusedMisuse&) = delete;
  RefusedMisuse& operator=(const RefusedMisuse&) = delete;

 private:
  const bool was_fatal_;
};

}  // namespace fraktor::inline v0::actor_internal

#endif  // FRAKTOR_ACTOR_CONTEXT_INTERNAL_MISUSE_H_
