#!/usr/bin/env python3
"""The page of `linblock report` in headless Chromium: what it draws and says is what the trace has.

usage: LINBLOCK=build/dev/linblock page_test.py
Pictures of the page go to LINBLOCK_SCREENSHOTS (default: build/report-screenshot). Exit code 77: there is no browser here, and nothing was
tested.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
SCREENSHOTS = pathlib.Path(os.environ.get("LINBLOCK_SCREENSHOTS", "build/report-screenshot")).resolve()


def missing() -> str:
    """What the test lacks, or nothing."""
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "python3-selenium"
    return ", ".join(package for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")) if not shutil.which(program))


def three(value: float) -> str:
    """As the page writes it: three digits."""
    return f"{float(f'{value:.3g}'):g}"


def open_browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.linblock("generate", "documents", "-o", "data.svm", "--rows", "4000", "-q")
        cls.linblock("generate", "documents", "-o", "test.svm", "--rows", "3000", "--skip", "4000", "-q")
        for name, *options in (("dual", "--tolerance", "0.001"), ("pegasos", "--solver", "pegasos", "--max-passes", "5")):
            cls.linblock("train", "data.svm", "-o", name, "--trace", f"{name}.jsonl", "--test", "test.svm", "--memory", "16M", "--loss", "hinge", "-q", *options)
        lines = (cls.folder / "dual.jsonl").read_text().splitlines(keepends=True)
        (cls.folder / "killed.jsonl").write_text("".join(lines[:2]))
        cls.linblock("report", "dual.jsonl", "pegasos.jsonl", "killed.jsonl", "-o", "report.html", "-q")
        cls.trace = [json.loads(line) for line in lines]
        cls.passes = [line for line in cls.trace if line["event"] == "pass"]
        cls.browser = open_browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        cls.scratch.cleanup()

    @classmethod
    def linblock(cls, *words):
        subprocess.run([os.path.abspath(os.environ["LINBLOCK"]), *words], cwd=cls.folder, check=True)

    def setUp(self):
        self.emulate("light")
        self.browser.get_log("performance")
        self.browser.get((self.folder / "report.html").as_uri())

    def tearDown(self):
        self.assertEqual(self.browser.get_log("browser"), [], "what the page's script complained of")

    def emulate(self, scheme, media=""):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def one(self, selector):
        return self.browser.find_element("css selector", selector)

    def chart(self, title):
        return self.one(f'svg[aria-label^="{title} against"]')

    def curve(self, title, run=0):
        """The points of a curve; none where it is not drawn."""
        found = self.chart(title).find_elements("css selector", f'path.curve[data-run="{run}"]')
        return [tuple(map(float, point.split())) for point in found[0].get_attribute("d")[1:].split("L")] if found else []

    def press(self, selector):
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.one(selector))
        self.one(selector).click()

    def background(self):
        color = self.browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in color[4:-1].split(",")) / 3

    def test_every_pass_is_a_point_of_its_curve(self):
        for title in ("Gap", "Test accuracy", "Objective"):
            self.assertEqual(len(self.curve(title)), len(self.passes), title)
        self.assertEqual(self.curve("Gap", run=1), [], "pegasos knows no gap")
        self.assertEqual(len(self.curve("Objective", run=1)), 5)
        self.assertGreater(len(self.curve("Memory held")), 0)

    def test_points_stand_where_the_logarithms_of_their_numbers_are(self):
        from math import log

        points = self.curve("Gap")
        for axis, values in enumerate(([line["seconds"] for line in self.passes], [line["gap"] for line in self.passes])):
            first, last = points[0][axis], points[-1][axis]
            for point, value in zip(points, values):
                share = log(value / values[0]) / log(values[-1] / values[0])
                self.assertAlmostEqual(point[axis], first + share * (last - first), delta=0.2)

    def test_a_better_accuracy_stands_higher(self):
        for better, (_, high) in zip(self.passes, self.curve("Test accuracy")):
            for worse, (_, low) in zip(self.passes, self.curve("Test accuracy")):
                if better["test_accuracy"] > worse["test_accuracy"]:
                    self.assertLess(high, low)
        self.assertGreater(len({line["test_accuracy"] for line in self.passes}), 1, "there is something to compare")

    def test_a_run_is_hidden_and_shown_by_its_name(self):
        button = 'button.run[data-run="0"]'
        self.press(button)
        self.assertEqual(self.one(button).get_attribute("aria-pressed"), "false")
        self.assertEqual(self.curve("Objective"), [])
        self.assertEqual(len(self.curve("Objective", run=1)), 5)
        self.one(button).send_keys(" ")  # by the keyboard
        self.assertEqual(self.one(button).get_attribute("aria-pressed"), "true")
        self.assertEqual(len(self.curve("Objective")), len(self.passes))

    def test_the_axis_is_seconds_or_bytes_or_passes_and_logarithmic_or_not(self):
        self.press('[data-x="pass"]')
        self.press('[data-log=""]')
        self.assertEqual(self.one('[data-x="pass"]').get_attribute("aria-pressed"), "true")
        self.assertEqual(self.one('[data-x="seconds"]').get_attribute("aria-pressed"), "false")
        across = [x for x, _ in self.curve("Gap")]
        steps = [b - a for a, b in zip(across, across[1:])]
        self.assertLess(max(steps) - min(steps), 0.3, "passes are as far from each other")
        self.press('[data-x="bytes_read"]')
        self.assertIn("bytes read", self.chart("Gap").text)

    def test_the_pointer_shows_the_numbers_of_the_nearest_pass(self):
        from selenium.webdriver.common.action_chains import ActionChains

        chart, (x, y), line = self.chart("Gap"), self.curve("Gap")[1], self.passes[1]
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", chart)
        ratio = chart.rect["width"] / float(chart.get_dom_attribute("viewBox").split()[2])
        ActionChains(self.browser).move_to_element_with_offset(
            chart, round(x * ratio - chart.rect["width"] / 2) + 2, round(y * ratio - chart.rect["height"] / 2)).perform()
        self.assert_tip_is_of(line)

    def assert_tip_is_of(self, line):
        words = self.one("#tip").text.splitlines()
        self.assertEqual(words[0], "dual")
        self.assertEqual(words[1], f"pass {line['pass']}" + (", certified" if line["certified"] else ""))
        for start, value, unit in (("gap ", 100 * line["gap"], "%"), ("objective ", line["primal"], ""), ("test accuracy ", 100 * line["test_accuracy"], "%")):
            (shown,) = [word for word in words if word.startswith(start)]
            self.assertTrue(shown.endswith(unit), shown)
            number = float(shown[len(start):len(shown) - len(unit)].replace(",", ""))
            self.assertAlmostEqual(number, value, delta=0.005 * abs(value), msg=start)
        self.assertTrue(words[-1].startswith(f"{three(line['seconds'])} s, "), words[-1])

    def test_the_arrow_keys_read_a_chart(self):
        from selenium.webdriver.common.keys import Keys

        chart = self.chart("Gap")
        for key, line in ((Keys.ARROW_RIGHT, self.passes[0]), (Keys.ARROW_RIGHT, self.passes[1]), (Keys.ARROW_LEFT, self.passes[0]), (Keys.END, self.passes[-1])):
            chart.send_keys(key)
            self.assert_tip_is_of(line)
        chart.send_keys(Keys.ESCAPE)
        self.assertEqual(self.one("#tip").text, "")

    def test_a_bar_has_the_seconds_of_its_pass(self):
        from selenium.webdriver.common.keys import Keys

        bars = self.chart("dual")
        bars.send_keys(Keys.ARROW_RIGHT)
        words = dict(line.removesuffix(" s").rsplit(" ", 1) for line in self.one("#tip").text.splitlines()[1:])
        for name, key in (("solving", "solve_seconds"), ("waiting for rows", "wait_seconds"), ("reading", "read_seconds"), ("decoding", "decode_seconds")):
            self.assertAlmostEqual(float(words[name]), self.passes[0][key], delta=0.006 * self.passes[0][key], msg=name)
        self.assertEqual(len(bars.find_elements("css selector", 'rect[data-kind="solve"]')), len(self.passes))

    def test_results_plan_and_command_are_there_in_words(self):
        page = self.one("body").text
        self.assertIn(f"Converged: gap {three(100 * self.trace[-1]['certified_gap'])}% (tolerance ", page)
        self.assertIn("Not converged: its method computes no bound (tolerance ", page)
        self.assertIn("not ended", page)
        self.assertIn(self.trace[0]["plan"]["words"], page)
        self.assertIn("train data.svm -o dual --trace dual.jsonl", page)
        threads = self.trace[-1]["threads"]
        self.assertIn("of processor time in", page)
        self.assertIn(f"thread {len(threads)}: {three(threads[-1]['shared_work_seconds'])} s of shared work", page)

    def test_a_resumed_run_has_the_time_of_all_its_parts(self):
        parts = [self.trace[0], *self.passes, dict(self.trace[0], event="resume"), self.passes[-1], self.trace[-1]]
        (self.folder / "resumed.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in parts))
        self.linblock("report", "resumed.jsonl", "-o", "resumed.html", "-q")
        self.browser.get((self.folder / "resumed.html").as_uri())
        self.assertIn(f"{three(2 * self.passes[-1]['seconds'])} s", self.one("#runs tbody").text)
        self.assertIn("once, from a checkpoint", self.one("#full").text)

    def test_the_numbers_can_be_had_as_a_table(self):
        from selenium.webdriver.support.ui import WebDriverWait

        self.press("#full details summary")
        rows = WebDriverWait(self.browser, 10).until(lambda browser: browser.find_elements("css selector", "#full .card:first-child tbody tr"))
        self.assertEqual(len(rows), len(self.passes))
        self.assertEqual(rows[2].find_element("css selector", "td").text, "3")

    def test_dark_light_print_and_a_narrow_screen(self):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.assertGreater(self.background(), 200)
        self.picture("light")
        self.emulate("dark")
        self.assertLess(self.background(), 60)
        self.picture("dark")
        self.emulate("dark", media="print")
        self.assertEqual(self.background(), 255, "paper is white")
        self.assertFalse(self.one(".controls").is_displayed())
        self.emulate("light")
        self.browser.set_window_size(500, 900)
        self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth - innerWidth"), 0, "nothing is wider than the screen")
        self.assertEqual(len(self.curve("Gap")), len(self.passes))
        self.browser.set_window_size(1280, 1000)

    def picture(self, name):
        height = self.browser.execute_script("return document.documentElement.scrollHeight")
        self.browser.set_window_size(1280, height + 150)
        self.browser.save_screenshot(str(SCREENSHOTS / f"report-{name}.png"))
        self.browser.set_window_size(1280, 1000)

    def test_odd_runs_are_drawn_without_a_number_that_is_none(self):
        begin, line, end = self.trace[0], self.passes[0], self.trace[-1]
        same = [dict(line, seconds=1.0, bytes_read=0, gap=0.0, **{"pass": number}) for number in (1, 2, 3)]
        nothing = dict.fromkeys(("seconds", "bytes_read", "primal", "resident_bytes", "solve_seconds", "wait_seconds", "read_seconds", "decode_seconds"), 0)
        huge = [dict(line, seconds=4e4 * number, bytes_read=5e12 * number, primal=1e14 / number, gap=1e8 / number**9, **{"pass": number}) for number in range(1, 200)]
        old = {key: value for key, value in begin.items() if key != "command"}
        for lines in ([begin], [begin, line], [old, *same], [begin, dict(line, gap=None, dual=None, test_accuracy=None, **nothing), end], [begin, *huge, end]):
            (self.folder / "odd.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in lines))
            self.linblock("report", "odd.jsonl", "-o", "odd.html", "-q")
            self.browser.get((self.folder / "odd.html").as_uri())
            for button in ('[data-x="bytes_read"]', '[data-log=""]', '[data-x="pass"]', '[data-x="seconds"]'):
                self.press(button)
                self.assertNotRegex(self.browser.execute_script("return document.querySelector('main').outerHTML"), "NaN|Infinity|undefined|\\[object")

    def test_a_run_of_which_nothing_is_known_yet_says_so(self):
        unknown = dict(self.passes[0], primal=None, gap=None, active_rows=1000, certified=False)
        (self.folder / "unknown.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in (self.trace[0], unknown)))
        self.linblock("report", "unknown.jsonl", "-o", "unknown.html", "-q")
        self.browser.get((self.folder / "unknown.html").as_uri())
        self.assertIn("not ended: no bound is known yet", self.one("body").text)

    def test_every_chart_of_runs_has_a_legend(self):
        for title in ("Gap", "Test accuracy", "Objective", "Memory held"):
            names = self.chart(title).find_element("xpath", "..").find_elements("css selector", ".legend li")
            drawn = self.chart(title).find_elements("css selector", "path.curve")
            self.assertEqual(len(names), len(drawn), title)
            self.assertIn("dual", [name.text for name in names])
        self.press('button.run[data-run="0"]')
        self.assertNotIn("dual", [name.text for name in self.browser.find_elements("css selector", "#progress .legend li")])

    def test_objectives_are_shown_by_their_distance_from_the_best_bound(self):
        from selenium.webdriver.common.keys import Keys

        bound = max(line["dual"] for line in [*self.passes, self.trace[-1]] if line["dual"] is not None and line.get("certified", True))
        labels = [label.text for label in self.chart("Objective").find_elements("css selector", "text")]
        self.assertTrue(any(label.endswith("%") for label in labels), labels)
        values = [(line["primal"] - bound) / bound for line in self.passes]
        heights = [y for _, y in self.curve("Objective")]
        for (better, low), (worse, high) in zip(zip(values, heights), zip(values[1:], heights[1:])):
            self.assertEqual(better > worse, low < high)
        self.chart("Objective").send_keys(Keys.ARROW_RIGHT)
        self.assert_tip_is_of(self.passes[0])

    def test_figures_and_charts_can_be_saved(self):
        saved = self.browser.execute_script("""
            const saved = [];
            URL.createObjectURL = blob => { saved.push(blob); return "#"; };
            HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };
            document.getElementById("csv").click();
            document.querySelector(".tools button").click();
            window.saved = saved;
            return Promise.all(saved.map(item => item instanceof Blob ? item.text() : item));""")
        text, name, drawing, drawing_name = saved
        self.assertEqual((name, drawing_name), ("passes.csv", "gap.svg"))
        rows = text.strip().split("\n")
        self.assertEqual(rows[0].split(",")[:3], ["run", "pass", "seconds"])
        self.assertEqual(len([row for row in rows if row.startswith("dual,")]), len(self.passes))
        self.assertAlmostEqual(float(rows[1].split(",")[4]) / self.passes[0]["primal"], 1, delta=1e-5)
        self.assertTrue(drawing.startswith("<svg"))
        self.assertIn("stroke: rgb", drawing)

    def test_a_phone_shows_every_figure_of_the_table(self):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 420, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        try:
            cells = self.browser.find_elements("css selector", "#runs td")
            self.assertGreater(len(cells), 5)
            for cell in cells:
                self.assertLessEqual(cell.rect["x"] + cell.rect["width"], 420)
            label = self.browser.execute_script("return getComputedStyle(arguments[0], '::before').content", cells[1])
            self.assertIn("result", label)
            self.assertLessEqual(self.browser.execute_script("return document.documentElement.scrollWidth"), 420)
            ticks = [text.text for text in self.chart("Gap").find_elements("css selector", "text[text-anchor=middle]")]
            self.assertGreater(len(ticks), 2, ticks)
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            self.browser.save_screenshot(str(SCREENSHOTS / "report-phone.png"))
        finally:
            self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    def test_nothing_is_loaded_but_the_page(self):
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        asked = {message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"}
        self.assertEqual({url for url in asked if not url.startswith("data:")}, {(self.folder / "report.html").as_uri()})


if __name__ == "__main__":
    if missing():
        print(f"skipped: the page was not opened, because these Debian packages are missing: {missing()}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
