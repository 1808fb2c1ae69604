// Runs Cloudflare's own speed test engine in a headless Chromium against a server, and prints its results as JSON.
//
//   node cloudflare.mjs http://127.0.0.1:8080 [CHROMIUM]
import { build } from "esbuild";
import { chromium } from "playwright-core";

const [server, browserPath = "/usr/bin/chromium"] = process.argv.slice(2);
const { outputFiles } = await build({
  stdin: {
    contents: `import Engine from "@cloudflare/speedtest"; globalThis.Engine = Engine;`,
    resolveDir: import.meta.dirname,
  },
  bundle: true,
  format: "iife",
  write: false,
});
const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
try {
  const context = await browser.newContext({ bypassCSP: true });
  const page = await context.newPage();
  // Like the engine at home: from another origin than the server's. It is the same server by another name: Chromium
  // lets pages from elsewhere ask nothing of this machine. Nothing is fetched but from the server.
  const home = new URL(server);
  home.hostname = "localhost";
  const foreign = [];
  page.on("request", (request) => {
    const { origin } = new URL(request.url());
    if (![server, home.origin].includes(origin)) foreign.push(request.url());
  });
  await page.goto(home.href);
  await page.addScriptTag({ content: outputFiles[0].text });
  const results = await page.evaluate(
    (base) =>
      new Promise((resolve, reject) => {
        const engine = new globalThis.Engine({
          autoStart: true,
          downloadApiUrl: `${base}/__down`,
          uploadApiUrl: `${base}/__up`,
          turnServerUri: null,
          logAimApiUrl: null,
          logMeasurementApiUrl: null,
          // The engine's own sequence without packet loss, which takes a TURN server, and its largest steps.
          measurements: [
            { type: "latency", numPackets: 20 },
            { type: "download", bytes: 1e5, count: 9 },
            { type: "download", bytes: 1e6, count: 8 },
            { type: "upload", bytes: 1e5, count: 8 },
            { type: "upload", bytes: 1e6, count: 6 },
            { type: "download", bytes: 1e7, count: 6 },
            { type: "upload", bytes: 1e7, count: 4 },
            { type: "download", bytes: 2.5e7, count: 4 },
            { type: "upload", bytes: 2.5e7, count: 4 },
          ],
        });
        engine.onFinish = (results) => resolve(results.getSummary());
        engine.onError = (error) => reject(new Error(String(error)));
      }),
    server,
  );
  console.log(JSON.stringify({ results, foreign }));
} finally {
  await browser.close();
}
