// Makes what the server serves out of src/: `node build.mjs [FOLDER]`, by default into dist/.
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { build } from "esbuild";

const folder = process.argv[2] ?? "dist";
await mkdir(folder, { recursive: true });
// What others wrote travels with its licence.
const licence = (await readFile("node_modules/uplot/LICENSE", "utf8")).trim();
const banner = `/*! Made of crates/serve/page/ and viewer/ of Weir (MIT OR Apache-2.0), and of uplot:\n${licence}\n*/`;
await build({
  entryPoints: ["src/page.ts", "src/page.css"],
  outdir: folder,
  bundle: true,
  minify: true,
  target: ["es2022"],
  format: "iife",
  charset: "utf8",
  legalComments: "none",
  banner: { js: banner, css: banner },
  // What the viewer's files import is found here, too.
  nodePaths: ["node_modules"],
});
for (const file of ["index.html", "icon.svg"]) {
  await copyFile(`src/${file}`, `${folder}/${file}`);
}
