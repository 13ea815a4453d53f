"""Tests of markdown_links.py."""

import unittest

from tidy import markdown_links
from tidy import source_tree

_OTHER = "# First `code`, and more\n## Twice\n## Twice\n```\n# no heading\n```\n"


def _found(text):
    tree = source_tree.FakeTree({"docs/a.md": text, "docs/b.md": _OTHER, "x/c.h": ""})
    return [found.text for found in markdown_links.check(tree)]


class MarkdownLinksTest(unittest.TestCase):
    """Which links lead nowhere."""

    def test_follows_relative_links(self):
        self.assertEqual(_found("[b](b.md) [c](../x/c.h) [folder](../x/) ![picture](b.md) [web](https://x.y/z)"), [])
        self.assertEqual(_found("see [b](c.md) and ![p](no.png)"),
                         ["the link c.md leads to no file", "the link no.png leads to no file"])

    def test_follows_anchors(self):
        text = "# Here\n[1](b.md#first-code-and-more) [2](b.md#twice-1) [3](#here) [`x`](b.md#twice)"
        self.assertEqual(_found(text), [])
        self.assertEqual(_found("[1](b.md#no-heading) [2](#there)"), [
            "the link b.md#no-heading leads to no heading of docs/b.md",
            "the link #there leads to no heading of docs/a.md",
        ])

    def test_leaves_code_alone(self):
        self.assertEqual(_found("`[x](nowhere.md)`\n```\n[x](nowhere.md)\n```\n"), [])


if __name__ == "__main__":
    unittest.main()
