"""Tests of internal_names.py."""

import unittest

from tidy import internal_names
from tidy import source_tree

_OPEN = "namespace fraktor::inline v0 {\n"
_CLOSE = "}  // namespace fraktor::inline v0\n"


def _found(text, path="x/internal/a.h"):
    tree = source_tree.FakeTree({path: text})
    return [(found.line, found.text.split()[0]) for found in internal_names.check(tree)]


def _found_in_fraktor(text):
    return [name for _, name in _found(_OPEN + text + _CLOSE)]


class InternalNamesTest(unittest.TestCase):
    """The namespaces of internal headers."""

    def test_finds_types(self):
        text = _OPEN + "class A final : public B<int> {\n void f();\n};\nenum class E : int { kOne };\n" + _CLOSE
        self.assertEqual(_found(text), [(2, "A"), (5, "E")])
        self.assertEqual(_found_in_fraktor("template <class T>\nstruct alignas(64) S {\n T t;\n};\n"), ["S"])
        self.assertEqual(_found_in_fraktor("struct [[nodiscard]] T {};\n"), ["T"])
        self.assertEqual(_found_in_fraktor('struct __attribute__((visibility("default"))) V {};\n'), ["V"])

    def test_finds_templates_with_values_of_parameters(self):
        text = "template <class T, size_t kBytes = size_t{1} << 20, class A = B>\nclass P {};\nclass Q {};\n"
        self.assertEqual(_found_in_fraktor(text), ["P", "Q"])

    def test_finds_functions_variables_and_aliases(self):
        self.assertEqual(_found_in_fraktor("void* Allocate(size_t size);\n"), ["Allocate"])
        inlined = "[[gnu::always_inline]] inline int F(std::pair<int, int> a = {}) { return 1; }\n"
        self.assertEqual(_found_in_fraktor(inlined), ["F"])
        self.assertEqual(_found_in_fraktor("template <class T>\nconstexpr size_t N() { return 1; }\n"), ["N"])
        self.assertEqual(_found_in_fraktor("inline constexpr size_t kMax = 1'000;\n"), ["kMax"])
        self.assertEqual(_found_in_fraktor("using Id = uint16_t;\n"), ["Id"])
        self.assertEqual(_found_in_fraktor("using actor_internal::A;\n"), ["A"])
        self.assertEqual(_found_in_fraktor("bool operator==(A a, A b);\n"), ["operator"])

    def test_finds_names_outside_of_all_namespaces(self):
        self.assertEqual(_found("struct S {};\n"), [(1, "S")])

    def test_is_quiet_about_internal_namespaces(self):
        self.assertEqual(_found("namespace fraktor::inline v0::actor_internal {\nclass A {};\n}\n"), [])
        self.assertEqual(_found(_OPEN + "namespace path_internal {\nclass A {};\nvoid F();\n}\n" + _CLOSE), [])
        self.assertEqual(_found("namespace fraktor::a_internal {\nnamespace {\nclass A {};\n}\n}\n"), [])

    def test_finds_names_behind_an_internal_namespace(self):
        text = "namespace fraktor {\nnamespace a_internal {\nclass A { int a() { return 1; } };\n}\nclass B {};\n}\n"
        self.assertEqual(_found(text), [(5, "B")])

    def test_is_quiet_about_declarations_that_add_no_name(self):
        self.assertEqual(_found_in_fraktor("class A;\nenum class E : uint8_t;\ntemplate <class T>\nclass B;\n"), [])
        self.assertEqual(_found_in_fraktor("template <>\nstruct Codec<int> {};\n"), [])
        self.assertEqual(_found_in_fraktor("template <class T>\nstruct C<T*> : D {};\n"), [])
        self.assertEqual(_found_in_fraktor("template <class T>\nclass C<T>::Inner final {};\n"), [])
        self.assertEqual(_found_in_fraktor("inline a_internal::Slot* Ref::slot() const { return nullptr; }\n"), [])
        self.assertEqual(_found_in_fraktor("template <class T>\nvoid B<T>::Run(int a) {}\nB::B(int a) : b(a) {}\n"), [])
        self.assertEqual(_found_in_fraktor("template <>\ninline constexpr bool kIsControl<int> = true;\n"), [])
        self.assertEqual(_found_in_fraktor('static_assert(sizeof(A) == 1, "class B { };");\n'), [])

    def test_is_quiet_about_other_headers(self):
        self.assertEqual(_found(_OPEN + "class A {};\n" + _CLOSE, "x/a.h"), [])


if __name__ == "__main__":
    unittest.main()
