#!/usr/bin/env python3
"""The check of docs/architecture.md finds what is missing, what is gone, and says what to write."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from check_architecture import problems, tables  # noqa: E402

PAGE = """# Title
### `src/base`
| file | purpose |
|---|---|
| `bytes` | Loads and stores |
| `file` | Input and output |

## Design
| `not` | a row of a folder |
### `src/store/text`
| `svmlight` | The parser |
"""
FILES = {"src/base": {"bytes", "file"}, "src/store/text": {"svmlight"}}


class Architecture(unittest.TestCase):
    def found(self, files=FILES, page=PAGE):
        return list(problems(files, tables(page)))

    def test_a_complete_page_is_fine(self):
        self.assertEqual(self.found(), [])

    def test_a_missing_file_is_named_with_its_row_and_section(self):
        [found] = self.found(FILES | {"src/base": {"bytes", "file", "fields"}})
        self.assertIn("src/base/fields is missing", found)
        self.assertIn("under ### `src/base`: | `fields` |", found)

    def test_a_file_in_the_table_of_another_folder_counts_for_nothing(self):
        [found] = self.found(FILES | {"src/store/text": {"svmlight", "bytes"}})
        self.assertIn("src/store/text/bytes is missing", found)

    def test_a_file_that_is_gone_is_named(self):
        [found] = self.found(FILES | {"src/base": {"bytes"}})
        self.assertIn("there is no src/base/file.h or .cc", found)

    def test_a_folder_needs_a_section_and_a_section_a_folder(self):
        self.assertIn("src/learn has no section", self.found(FILES | {"src/learn": {"train"}})[0])
        self.assertIn("remove the section ### `src/base`", self.found({"src/store/text": {"svmlight"}})[0])

    def test_a_file_has_one_row_that_says_something(self):
        self.assertIn("two rows", self.found(page=PAGE.replace("| `file` | Input", "| `bytes` | Again |\n| `file` | Input"))[0])
        self.assertIn("does not say", self.found(page=PAGE.replace("Input and output", ""))[0])


if __name__ == "__main__":
    unittest.main()
