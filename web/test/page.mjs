// Drives the pages that tests/report/browser_test.sh made: full.html, two.html (two folders), little.html (one file), empty.html.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [browserPath, folder] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });

/** A page whose errors and requests are noted; the check at its end finds none. */
async function open(name, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1300, height: 900 }, bypassCSP: true, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("dialog", (dialog) => wrong.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => /^(file|data|blob):/.test(request.url()) || wrong.push(`request: ${request.url()}`));
  const began = performance.now();
  await page.goto(`file://${folder}/${name}`);
  await page.waitForFunction(() =>
    [...document.querySelectorAll("figure.chart")].every((figure) => figure.dataset.drawn),
  );
  console.log(`${name}: drawn after ${Math.round(performance.now() - began)} ms`);
  return {
    page,
    async close() {
      assert.deepEqual(wrong, []);
      await context.close();
    },
  };
}

async function seriousFindings(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return result.violations
    .filter((violation) => violation.impact === "serious" || violation.impact === "critical")
    .map(
      (violation) =>
        `${violation.id}: ${violation.nodes
          .slice(0, 3)
          .map((node) => node.html)
          .join(" | ")}`,
    );
}

const sections = [
  "findings",
  "backends",
  "steps",
  "winners",
  "curves",
  "timeline",
  "sizes",
  "plan",
  "reconcile",
  "replay",
  "shape",
  "search",
  "files",
  "missing",
];

const checks = {
  async "every section is there and every chart is drawn"() {
    const { page, close } = await open("full.html");
    assert.deepEqual(await page.$$eval("main > section", (all) => all.map((one) => one.id)), sections);
    assert.deepEqual(
      await page.$$eval("nav a", (all) => all.map((one) => one.getAttribute("href"))),
      sections.map((id) => `#${id}`),
    );
    for (const id of ["steps", "winners", "curves", "timeline", "sizes", "plan", "reconcile", "replay", "shape", "search"]) {
      const marks = await page.$$eval(`#${id} figure.chart`, (figures) =>
        figures.map((figure) => {
          const canvas = figure.querySelector("canvas");
          if (!canvas) return figure.querySelectorAll("svg path").length;
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return new Set(new Uint32Array(data.buffer)).size;
        }),
      );
      assert.ok(marks.length > 0 && marks.every((count) => count > 3), `${id}: ${marks}`);
    }
    await close();
  },
  async "figures have labels and tables"() {
    const { page, close } = await open("full.html");
    for (const figure of await page.$$("figure.chart")) {
      assert.ok((await figure.$eval(".plot", (plot) => plot.getAttribute("aria-label"))).length > 10);
      await (await figure.$("summary")).click();
      await figure.waitForSelector("tbody tr");
    }
    await close();
  },
  async "findings come first and the header says what was skipped"() {
    const { page, close } = await open("full.html");
    assert.equal(await page.locator(".findings li").count(), 3);
    assert.match(
      await page.locator("#findings").innerText(),
      /auto is 1\.25× faster than the best single library \(mpi\)/,
    );
    assert.match(await page.locator("#files").innerText(), /network namespaces/);
    assert.match(await page.locator("#findings").innerText(), /Not measured: .*several hosts.*CUDA memory/);
    await close();
  },
  async "a tuned step, fusion and causes of waiting are shown"() {
    const { page, close } = await open("full.html");
    const steps = page.locator("#steps");
    assert.match(await steps.innerText(), /chosen routes are 1\.25× as fast.*1\.20× to 1\.30×/s);
    await steps.locator("summary", { hasText: "Chosen routes" }).click();
    assert.match(await steps.locator("table", { hasText: "all_to_all" }).innerText(), /all_to_all\s+all\s+mpi\s+native/);
    assert.match(await page.locator("#winners").innerText(), /up to 1 KiB are faster fused/);
    const waits = page.locator("#reconcile figure", { hasText: "a rank is late" });
    assert.equal(await waits.count(), 1);
    assert.match(await page.locator("#reconcile").innerText(), /rank 1 is late.*3 operations have no expected time/s);
    assert.match(await page.locator("#reconcile tbody").first().innerText(), /differs\s+all_reduce/);
    await close();
  },
  async "a cell opens its routes by keyboard"() {
    const { page, close } = await open("full.html");
    const cells = page.locator("table.heat button");
    await cells.first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    const label = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
    assert.match(await label(), /^mpi 1\.10× faster than the next library: all_reduce, 4 KiB$/);
    await page.keyboard.press("Enter");
    assert.match(await page.locator(".drill").innerText(), /mpi \(ring\) is 1\.10× faster than shm/);
    await page.waitForFunction(() => document.querySelectorAll(".drill svg path").length > 3);
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowUp");
    assert.match(await label(), /broadcast, 64 B/);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator(".drill").isHidden(), true);
    await close();
  },
  async "a library taken away gives its cells to the next"() {
    const { page, close } = await open("full.html");
    const first = page.locator("table.heat tr", { hasText: "all_reduce" }).locator("button").first();
    assert.match(await first.innerText(), /shm/);
    await page.locator("input[data-backend=shm]").focus();
    await page.keyboard.press("Space");
    assert.match(await first.innerText(), /mpi/);
    await page.locator("input[data-backend=shm]").check();
    assert.match(await first.innerText(), /shm/);
    await close();
  },
  async "another operation redraws both curves"() {
    const { page, close } = await open("full.html");
    await page.locator("#curves select").nth(1).selectOption({ label: "all_to_all" });
    const labels = await page.$$eval("#curves .plot", (plots) => plots.map((plot) => plot.getAttribute("aria-label")));
    assert.ok(
      labels.every((text) => text.includes("all_to_all")),
      labels.join(),
    );
    await close();
  },
  async "the timeline zooms with buttons"() {
    const { page, close } = await open("full.html");
    const pixels = () => page.$eval("#timeline canvas", (canvas) => canvas.toDataURL());
    const before = await pixels();
    await page.getByRole("button", { name: "Zoom in" }).press("Enter");
    await page.waitForFunction((old) => document.querySelector("#timeline canvas").toDataURL() !== old, before);
    await page.getByRole("button", { name: "Whole step" }).press("Enter");
    await close();
  },
  async "dark and light by the system and by the button"() {
    const { page, close } = await open("full.html", { colorScheme: "dark" });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await background();
    await page.locator("#theme-toggle").press("Enter");
    assert.notEqual(await background(), dark);
    await page.locator("#theme-toggle").press("Enter");
    assert.equal(await background(), dark);
    await close();
  },
  async "tooltips have the colours of the page"() {
    const { page, close } = await open("full.html", { colorScheme: "dark" });
    const plot = page.locator("#sizes .plot");
    await plot.scrollIntoViewIfNeeded();
    const box = await plot.boundingBox();
    const tooltip = page.locator("#sizes .plot > div", { has: page.locator(".tip") });
    for (let step = 0; step < 60 && !(await tooltip.count()); ++step)
      await page.mouse.move(box.x + (box.width * (step + 0.5)) / 60, box.y + box.height * 0.8);
    const colour = (element) => getComputedStyle(element).backgroundColor;
    assert.equal(await tooltip.evaluate(colour), await page.locator("body").evaluate(colour));
    await close();
  },
  async "text of files is never taken for HTML"() {
    const { page, close } = await open("full.html");
    assert.equal(await page.locator("img").count(), 0);
    await page.locator("#replay summary").click();
    assert.match(await page.locator("#replay table").innerText(), /<\/script><img/);
    await close();
  },
  async "axe has no serious finding, light and dark"() {
    for (const colorScheme of ["light", "dark"]) {
      const { page, close } = await open("full.html", { colorScheme });
      await page.locator("table.heat button").first().click();
      for (const details of await page.$$("details:not([open]) > summary")) await details.click();
      assert.deepEqual(await seriousFindings(page), []);
      await close();
    }
  },
  async "a narrow window needs no sideways scrolling"() {
    const { page, close } = await open("full.html", { viewport: { width: 390, height: 800 } });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)) <= 0);
    await close();
  },
  async "print leaves out controls"() {
    const { page, close } = await open("full.html");
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("nav").isHidden(), true);
    assert.equal(await page.locator("#curves .controls").isHidden(), true);
    await close();
  },
  async "parts without data are listed with their command"() {
    const { page, close } = await open("little.html");
    assert.deepEqual(await page.$$eval("nav a", (all) => all.map((one) => one.getAttribute("href"))), [
      "#findings",
      "#curves",
      "#files",
      "#missing",
    ]);
    assert.match(await page.locator("#missing").innerText(), /medley bench -n 2 --mix all/);
    await close();
  },
  async "an empty folder says so"() {
    const { page, close } = await open("empty.html");
    assert.match(await page.locator("#findings").innerText(), /No measurements were found/);
    assert.ok((await page.locator("#missing dt").count()) > 5);
    await close();
  },
  async "two folders are side by side"() {
    const { page, close } = await open("two.html");
    assert.equal(await page.locator("#steps .run").count(), 2);
    assert.match(
      await page.locator("#changes tbody tr").first().innerText(),
      /moe step over auto.*800 µs.*950 µs.*1\.19× faster/s,
    );
    assert.deepEqual(await seriousFindings(page), []);
    await close();
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok: ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAILED: ${name}\n${error.stack}`);
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
