# What tests have in common that compile programs with every compiler there is, to see which are refused, and how. They source it:
#
#   source refused_programs.sh PATHS    # a file with the folders to include from, a line each
#   compile COMPILER FILE               # says what the compiler says of it
#   complain TEXT                       # the test fails; all complaints are printed in the end
#   judge_with_every_compiler FUNCTION...   # calls each with each compiler, side by side; false if there was a complaint

compilers=()
seen=" "
for compiler in "${CXX:-}" g++ clang++ clang++-14; do
  path=$(command -v "${compiler:-no compiler}") || continue
  path=$(realpath "$path")
  case "$seen" in *" $path "*) continue ;; esac
  seen+="$path "
  compilers+=("$compiler")
done
[[ ${#compilers[@]} -gt 0 ]] || { echo "no C++ compiler found: install g++ or set CXX"; exit 1; }

flags=()
while IFS= read -r path; do flags+=("-I$path"); done <"$1"

complaints="$TEST_TMPDIR/complaints"
: >"$complaints"
complain() { echo "$*" >>"$complaints"; }

is_clang() { [[ $("$1" --version | head -1) == *clang* ]]; }
is_gcc_12() { ! is_clang "$1" && [[ $("$1" -dumpversion) == 12* ]]; }

compile() {
  local all_errors=-fmax-errors=0
  if is_clang "$1"; then all_errors=-ferror-limit=0; fi
  "$1" -std=c++20 -fsyntax-only "$all_errors" -ftemplate-backtrace-limit=0 "${flags[@]}" "$2" 2>&1
}

judge_with_every_compiler() {
  local compiler judge
  for compiler in "${compilers[@]}"; do
    # One that ends before it has judged is a complaint too.
    for judge in "$@"; do { "$judge" "$compiler" || complain "$judge $compiler ended early"; } & done
  done
  wait
  cat "$complaints"
  [[ ! -s $complaints ]]
}
