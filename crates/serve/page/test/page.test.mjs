// The page in a real browser against a real server.
//
// WEIR_AGENT: the server's program. CHROMIUM: the browser. SCREENSHOTS: a folder for pictures, if wanted.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const AGENT = process.env.WEIR_AGENT ?? "../../../target/debug/weir-agent";
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const missing = [AGENT, CHROMIUM].filter((file) => !existsSync(file));
const skip = missing.length > 0 && `there is no ${missing.join(" and no ")}`;

let browser;
const servers = [];
before(async () => {
  if (!skip) browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
});
after(async () => {
  for (const server of servers) server.kill("SIGTERM");
  await browser?.close();
});

/** Starts a server, and returns it and its address. */
async function serve(...options) {
  const words = ["serve", "--listen", "127.0.0.1:0", "--without", "irtt", "--json", ...options];
  const server = spawn(AGENT, words, { stdio: ["ignore", "ignore", "pipe"] });
  servers.push(server);
  for await (const line of createInterface(server.stderr)) {
    const address = JSON.parse(line).address;
    if (address) return { server, url: `http://${address}/` };
  }
  throw new Error("the server ended");
}

async function open(url, viewport, colorScheme = "light") {
  const context = await browser.newContext({ viewport, colorScheme });
  const page = await context.newPage();
  const foreign = [];
  page.on("request", (request) => {
    if (new URL(request.url()).host !== new URL(url).host) foreign.push(request.url());
  });
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(url);
  return { page, foreign, errors };
}

async function picture(page, name) {
  if (process.env.SCREENSHOTS) {
    await page.screenshot({ path: `${process.env.SCREENSHOTS}/${name}.png`, fullPage: true });
  }
}

/** Three charts of the viewer, whose lines have what was measured: as their files say. */
async function chartsHold(page) {
  const rows = { Ping: 200, Throughput: 2 * 60, "Distribution of pings": 200 };
  for (const [title, least] of Object.entries(rows)) {
    const chart = page.getByRole("region", { name: title, exact: true });
    await chart.scrollIntoViewIfNeeded();
    await chart.locator("canvas").waitFor();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      chart.getByRole("button", { name: `Save as CSV of ${title}`, exact: true }).click(),
    ]);
    const lines = readFileSync(await file.path(), "utf8").trim().split("\n");
    assert.ok(lines.length - 1 >= least, `${title}: ${lines.length - 1} rows`);
    assert.deepEqual(lines.slice(1).filter((line) => !/^"[a-z ]+",[\d.]+,[\d.e-]+$/.test(line)), []);
  }
}

const number = async (page, id) => Number.parseFloat(await page.locator(`#${id}`).textContent());
const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 900 };

for (const [name, viewport, scheme] of [["phone", PHONE, "light"], ["desktop", DESKTOP, "dark"]]) {
  test(`one button gives rates, latencies and a grade: ${name}`, { skip, timeout: 90_000 }, async () => {
    const { url } = await serve("--max-rate", "80mbit");
    const { page, foreign, errors } = await open(url, viewport, scheme);
    await picture(page, `${name}-start`);
    await page.evaluate(() => {
      window.negative = [];
      const look = () => {
        for (const output of document.querySelectorAll("output")) {
          if (Number.parseFloat(output.textContent) < 0) window.negative.push(output.id);
        }
      };
      new MutationObserver(look).observe(document.querySelector("#live"), { childList: true, subtree: true });
    });
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByText("Uploading").waitFor({ timeout: 30_000 });
    await page.waitForFunction(() => Number.parseFloat(document.querySelector("#up").textContent) > 0);
    assert.equal(await page.locator("#charts .chart canvas").count(), 2, "charts grow while the test runs");
    await picture(page, `${name}-running`);
    assert.deepEqual(await page.evaluate(() => window.negative), [], "no rate was ever below 0");
    await page.getByText("Done.").waitFor({ timeout: 40_000 });
    await picture(page, `${name}-done`);
    // The server lets 80 Mbit/s of TCP payload and headers of HTTP pass.
    for (const direction of ["down", "up"]) {
      const rate = await number(page, direction);
      assert.ok(rate > 40 && rate <= 88, `${direction}: ${rate} Mbit/s`);
    }
    for (const latency of ["idle", "loaded-down", "loaded-up", "loaded-both"]) {
      assert.ok((await number(page, latency)) > 0, latency);
    }
    assert.match(await page.locator("#grade").textContent(), /^(A\+|[A-DF])$/);
    await chartsHold(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= viewport.width, `nothing sticks out: ${width}`);
    assert.deepEqual({ foreign, errors }, { foreign: [], errors: [] });
  });
}

test("a result is kept, saved, and carried by a link", { skip, timeout: 120_000 }, async () => {
  const { url } = await serve("--max-rate", "400mbit");
  const { page, errors } = await open(url, DESKTOP);
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByText("Done.").waitFor({ timeout: 60_000 });
  const figures = async (of) => {
    const ids = ["down", "up", "idle", "loaded-down", "loaded-up", "loaded-both", "grade", "meaning"];
    return Promise.all(ids.map((id) => of.locator(`#${id}`).textContent()));
  };
  const measured = await figures(page);
  for (const name of ["JSON", "CSV"]) {
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: `Save as ${name}`, exact: true }).click(),
    ]);
    assert.equal(file.suggestedFilename(), `weir-result.${name.toLowerCase()}`);
  }
  await page.getByRole("button", { name: "Link to this result" }).click();
  await page.waitForFunction(() => location.hash.startsWith("#r="));
  const other = await open(page.url(), PHONE, "dark");
  await other.page.getByText("from a link").waitFor();
  await chartsHold(other.page);
  const ping = other.page.getByRole("region", { name: "Ping", exact: true });
  await ping.locator(".plot").focus();
  await other.page.keyboard.press("+");
  await other.page.getByText(/^8\.\d\d s to 24\.\d\d s$/).waitFor();
  await ping.getByRole("button", { name: "Save as PNG of Ping" }).click();
  assert.deepEqual(await figures(other.page), measured);
  assert.equal(await other.page.locator("#results button").count(), 0, "the history of another browser");
  await other.page.goto(`${url}#r=AAAA`);
  await other.page.getByText("no result that can be read").waitFor();
  await page.goto(url);
  await page.reload();
  await page.locator("#results button").click();
  await page.getByText("which this browser has kept").waitFor();
  assert.deepEqual(await figures(page), measured);
  await page.getByRole("button", { name: "Forget them" }).click();
  assert.equal(await page.locator("#results button").count(), 0);
  assert.deepEqual([...errors, ...other.errors], [], "no error, also of requests");
});

test("a secret is asked for, and the right one opens", { skip, timeout: 90_000 }, async () => {
  const file = `${mkdtempSync(`${tmpdir()}/weir-page-`)}/secret`;
  writeFileSync(file, "correct horse\n");
  const { url } = await serve("--auth", file, "--max-rate", "80mbit");
  const { page } = await open(url, PHONE);
  await page.getByRole("button").click();
  await page.getByText("asks for its secret").waitFor();
  await page.getByLabel("Secret").fill("incorrect horse");
  await page.getByRole("button").click();
  await page.getByText("the secret is wrong").waitFor();
  await page.getByLabel("Secret").fill("correct horse");
  await page.getByRole("button").click();
  await page.getByText("Downloading").waitFor({ timeout: 20_000 });
});

test("a server that goes away is told", { skip, timeout: 60_000 }, async () => {
  const { server, url } = await serve("--max-rate", "80mbit");
  const { page } = await open(url, DESKTOP);
  await page.getByRole("button").click();
  await page.getByText("Downloading").waitFor({ timeout: 20_000 });
  server.kill("SIGTERM");
  await page.getByText(/The server (says|ended)/).waitFor({ timeout: 20_000 });
  await page.getByRole("button", { name: "Start again" }).waitFor();
});
