// Makes what the pages of `weir report` and `weir ui` load out of src/: `node build.mjs [FOLDER]`.
import { mkdir, readFile } from "node:fs/promises";
import { build } from "esbuild";

const folder = process.argv[2] ?? "../python/weirlab/viewer/dist";
await mkdir(folder, { recursive: true });
// What others wrote travels with their licences, also into every report.
const licences = await Promise.all(
  ["uplot", "hyparquet", "fzstd"].map(async (name) => `${name}:\n${await readFile(`node_modules/${name}/LICENSE`, "utf8")}`),
);
const banner = `/*! Made of viewer/ of Weir (MIT OR Apache-2.0), and of:\n\n${licences.join("\n").trim()}\n*/`;
await build({
  entryPoints: ["src/viewer.ts", "src/ui.ts", "src/viewer.css"],
  outdir: folder,
  bundle: true,
  minify: true,
  target: ["es2022"],
  format: "iife",
  charset: "ascii",
  legalComments: "none",
  banner: { js: banner, css: banner },
});
