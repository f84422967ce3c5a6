#!/usr/bin/env python3
"""The tables of options in docs/cli.md are what the program itself says.

usage: cli_options.py PROGRAM            says which tables are out of date
       cli_options.py PROGRAM --write    writes them

A table stands between <!-- options: train --> and <!-- end of options -->. <!-- options: cv beyond train --> lists what
train does not have.
"""
import json
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/cli.md"
TABLE = re.compile(r"(<!-- options: (\w+)(?: beyond (\w+))? -->\n).*?(<!-- end of options -->)", re.DOTALL)
DEFAULT = re.compile(r"\s*\(default: ((?:[^()]|\([^()]*\))*)\)")


def row(option):
    name = option["name"].replace(",", ", ")
    if option["value"]:
        name += f" {option['value'].split('|')[0]}"
    default = DEFAULT.search(option["help"])
    meaning = DEFAULT.sub("", option["help"], count=1)
    cells = (f"`{name}`", meaning + (" (required)" if option["required"] else ""), default[1] if default else "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def table(options):
    lines, group = [], None
    for option in options:
        if option["group"] != group and option["group"] != "Options":
            group = option["group"]
            lines.append(f"| **{group}** | | |\n")
        lines.append(row(option))
    return "| option | meaning | default |\n|---|---|---|\n" + "".join(lines)


def main(words) -> int:
    described = json.loads(subprocess.check_output([words[0], "--describe-options"]))
    commands = {command["command"]: [o for o in command["options"] if o["name"].startswith("-")] for command in described}
    seen = set()

    def replaced(match):
        name, beyond = match[2], match[3]
        seen.add(name)
        known = {option["name"] for option in commands.get(beyond, ())}
        return match[1] + table([o for o in commands[name] if o["name"] not in known]) + match[4]

    text = PAGE.read_text()
    new = TABLE.sub(replaced, text)
    problems = [f"{PAGE.name} has no table of options for {name}" for name, options in commands.items()
                if any(option["name"].startswith("-") for option in options) and name not in seen]
    if new != text and "--write" in words:
        PAGE.write_text(new)
    elif new != text:
        problems.append(f"{PAGE.name} has other options than the program: run tools/cli_options.py PROGRAM --write")
    print("\n".join(problems) if problems else f"cli options: {len(seen)} tables agree with the program")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
