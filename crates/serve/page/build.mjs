// Makes what the server serves out of src/: `node build.mjs [FOLDER]`, by default into dist/.
import { copyFile, mkdir } from "node:fs/promises";
import { build } from "esbuild";

const folder = process.argv[2] ?? "dist";
await mkdir(folder, { recursive: true });
await build({
  entryPoints: ["src/page.ts", "src/page.css"],
  outdir: folder,
  bundle: true,
  minify: true,
  target: ["es2022"],
  format: "iife",
  charset: "utf8",
  legalComments: "none",
});
for (const file of ["index.html", "icon.svg"]) {
  await copyFile(`src/${file}`, `${folder}/${file}`);
}
