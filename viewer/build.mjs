// Makes what the pages of `weir report` and `weir ui` load out of src/: `node build.mjs [FOLDER]`.
import { mkdir } from "node:fs/promises";
import { build } from "esbuild";

const folder = process.argv[2] ?? "../python/weirlab/viewer/dist";
await mkdir(folder, { recursive: true });
await build({
  entryPoints: ["src/viewer.ts", "src/ui.ts", "src/viewer.css"],
  outdir: folder,
  bundle: true,
  minify: true,
  target: ["es2022"],
  format: "iife",
  charset: "ascii",
  legalComments: "none",
});
