// Makes the playground out of src/playground and of what crates/wasm was compiled to: `node playground.mjs WASM TRACES FOLDER`.
import { cp, mkdir, readFile } from "node:fs/promises";
import { build } from "esbuild";

const [wasm, traces, folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("give the folder of the WebAssembly, that of the recordings, and where the page goes");
await mkdir(folder, { recursive: true });
const licence = await readFile("node_modules/uplot/LICENSE", "utf8");
const banner = `/*! Made of viewer/ of Weir (MIT OR Apache-2.0), and of:\n\nuplot:\n${licence.trim()}\n*/`;
await build({
  entryPoints: ["playground", "worker"].map((name) => `src/playground/${name}.ts`).concat("src/playground/playground.css"),
  outdir: folder,
  bundle: true,
  minify: true,
  target: ["es2022"],
  format: "esm",
  charset: "ascii",
  legalComments: "none",
  banner: { js: banner, css: banner },
});
await cp("src/playground/index.html", `${folder}/index.html`);
for (const file of ["weir.js", "weir_bg.wasm", "licences.txt"]) await cp(`${wasm}/${file}`, `${folder}/${file}`);
for (const name of ["Verizon-LTE-short.up", "Verizon-LTE-short.down"]) await cp(`${traces}/${name}`, `${folder}/traces/${name}`);
