#!/usr/bin/env bash
# Compiles message types that are refused, and looks at what the compiler says.
set -euo pipefail

compiler=$(command -v "${CXX:-c++}" || command -v g++ || command -v clang++) || { echo "no C++ compiler found"; exit 1; }
include="$TEST_TMPDIR/include"
mkdir -p "$include"
ln -sfn "$TEST_SRCDIR/$TEST_WORKSPACE" "$include/fraktor"
failures=0

# compile CODE: the messages of the compiler go to $output.
compile() {
  printf '%s\n' '#include "fraktor/actor/message/message_type.h"' "$1" > "$TEST_TMPDIR/message.cc"
  output=$("$compiler" -std=c++20 -fsyntax-only -I "$include" "$TEST_TMPDIR/message.cc" 2>&1)
}

accepts() {
  if ! compile "$1"; then
    echo "refused, but is fine: $1"
    echo "$output"
    failures=1
  fi
}

# refuses CODE TEXT: TEXT is in the messages.
refuses() {
  if compile "$1"; then
    echo "accepted, but must not be: $1"
    failures=1
  elif [[ $output != *"$2"* ]]; then
    echo "refused without saying \"$2\": $1"
    echo "$output"
    failures=1
  fi
}

accepts 'struct MoveOnly { MoveOnly(MoveOnly&&) = default; }; auto* a = fraktor::MessageTypeOf<MoveOnly>();
  enum class Enum { kA }; auto* b = fraktor::MessageTypeOf<Enum>();
  struct alignas(4096) Page { char c; }; auto* c = fraktor::MessageTypeOf<Page>();'

refuses 'struct M { M(M&&) {} }; auto* t = fraktor::MessageTypeOf<M>();' \
  'message moves are noexcept: declare the move constructor noexcept'
refuses 'struct Text { Text(const Text&); Text(Text&&) noexcept; }; struct M { const Text text; }; auto* t = fraktor::MessageTypeOf<M>();' 'because of a const member'
refuses 'struct M { M(M&&) = delete; }; auto* t = fraktor::MessageTypeOf<M>();' 'message moves are noexcept'
refuses 'struct M { ~M() noexcept(false) {} }; auto* t = fraktor::MessageTypeOf<M>();' 'by a destructor that is noexcept'
refuses 'auto* t = fraktor::MessageTypeOf<const int>();' 'without const, volatile and &'
refuses 'auto* t = fraktor::MessageTypeOf<int&>();' 'without const, volatile and &'
refuses 'auto* t = fraktor::MessageTypeOf<int[3]>();' 'put an array into a struct'
refuses 'auto* t = fraktor::MessageTypeOf<char*>();' 'does not say who owns what it points to'

exit "$failures"
