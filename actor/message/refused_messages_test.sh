#!/usr/bin/env bash
# Compiles message types that are refused, and looks at what the compiler says.
set -euo pipefail

if ! compiler=$(command -v "${CXX:-c++}" || command -v g++ || command -v clang++); then
  echo "no C++ compiler found: install g++ or set CXX"
  exit 1
fi
include="$TEST_TMPDIR/include"
mkdir -p "$include"
ln -sfn "$TEST_SRCDIR/$TEST_WORKSPACE" "$include/fraktor"

# Prints what the compiler says about the code on its input.
compile() {
  cat > "$TEST_TMPDIR/message.cc"
  "$compiler" -std=c++20 -fsyntax-only -I "$include" "$TEST_TMPDIR/message.cc" 2>&1
}

if ! output=$(compile << 'CODE'
#include "fraktor/actor/message/message_type.h"
struct MoveOnly { MoveOnly(MoveOnly&&) = default; };
enum class Enum { kA };
struct alignas(4096) Page { char c; };
struct Pause : fraktor::ControlMessage { int seconds = 0; };
struct Halt {};
template <> inline constexpr bool fraktor::kIsControlMessage<Halt> = true;
static_assert(fraktor::kIsControlMessage<Pause> && fraktor::kIsControlMessage<Halt>);
static_assert(!fraktor::kIsControlMessage<Enum>);
template const fraktor::MessageType* fraktor::MessageTypeOf<MoveOnly>();
template const fraktor::MessageType* fraktor::MessageTypeOf<Enum>();
template const fraktor::MessageType* fraktor::MessageTypeOf<Page>();
CODE
); then
  echo "a message that is fine was refused:"
  echo "$output"
  exit 1
fi

if output=$(compile << 'CODE'
#include "fraktor/actor/message/message_type.h"
struct Text { Text(const Text&); Text(Text&&) noexcept; };
struct ThrowingMove { ThrowingMove(ThrowingMove&&) {} };
struct ConstMember { const Text text; };
struct Immobile { Immobile(Immobile&&) = delete; };
struct ThrowingEnd { ThrowingEnd(ThrowingEnd&&) noexcept; ~ThrowingEnd() noexcept(false) {} };
struct MarkedInside { static constexpr bool kIsControlMessage = true; };
struct TickInside { static constexpr bool kLeavesReceiveTimeout = true; };
struct MarkedConst {};
template <> inline constexpr bool fraktor::kIsControlMessage<const MarkedConst> = true;
struct MarkedReference {};
template <> inline constexpr bool fraktor::kIsSuppressedDeadLetter<const MarkedReference&> = true;
template const fraktor::MessageType* fraktor::MessageTypeOf<MarkedInside>();
template const fraktor::MessageType* fraktor::MessageTypeOf<TickInside>();
template const fraktor::MessageType* fraktor::MessageTypeOf<MarkedConst>();
template const fraktor::MessageType* fraktor::MessageTypeOf<MarkedReference>();
template const fraktor::MessageType* fraktor::MessageTypeOf<ThrowingMove>();
template const fraktor::MessageType* fraktor::MessageTypeOf<ConstMember>();
template const fraktor::MessageType* fraktor::MessageTypeOf<Immobile>();
template const fraktor::MessageType* fraktor::MessageTypeOf<ThrowingEnd>();
template const fraktor::MessageType* fraktor::MessageTypeOf<const int>();
template const fraktor::MessageType* fraktor::MessageTypeOf<int&>();
template const fraktor::MessageType* fraktor::MessageTypeOf<int[3]>();
template const fraktor::MessageType* fraktor::MessageTypeOf<char*>();
CODE
); then
  echo "messages that must be refused were accepted"
  exit 1
fi

failed=0
# expect COUNT TEXT: so many errors say TEXT.
expect() {
  local found
  found=$(grep "error: " <<< "$output" | grep -cF "$2" || true)
  if [[ $found != "$1" ]]; then
    echo "$found errors instead of $1 say: $2"
    failed=1
  fi
}
expect 3 'message moves are noexcept: declare the move constructor noexcept; if there is none because of a const member'
expect 1 'a message must be destructible, by a destructor that is noexcept'
expect 2 'a message type is written without const, volatile and &'
expect 1 'put an array into a struct, a std::array or a std::vector'
expect 1 'a bare pointer does not say who owns what it points to'
expect 2 'a marker that is a member of the message does nothing'
expect 2 'a marker is specialized for the bare type of the message'
if [[ $failed != 0 ]]; then echo "$output"; fi

# A misspelt marker.
for misspelt in 'struct Pause : fraktor::ControlMesage {};' \
  'struct Pause {}; template <> inline constexpr bool fraktor::kIsControlMesage<Pause> = true;'; do
  if output=$(compile <<< "#include \"fraktor/actor/message/message_type.h\"
$misspelt"); then
    echo "a misspelt marker was accepted: $misspelt"
    failed=1
  elif ! grep -q "Mesage" <<< "$output"; then
    echo "the error does not name the misspelt marker: $output"
    failed=1
  fi
done
exit "$failed"
