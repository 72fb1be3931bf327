// Bundles src/ into dist/, which is checked in and which the gateway embeds.
//
//   node build.mjs            writes dist/
//   node build.mjs --out DIR  writes DIR instead: testing/lint compares it with dist/
//   node build.mjs --test     bundles the unit tests into .tests/ for node's test runner
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const [mode, folder] = process.argv.slice(2);

const common = {
  absWorkingDir: here,
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};

if (mode === "--test") {
  const out = join(here, ".tests");
  rmSync(out, { recursive: true, force: true });
  const tests = readdirSync(join(here, "src"), { recursive: true }).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    entryPoints: tests.map((name) => join("src", name)),
    outdir: out,
    entryNames: "[name]",
    outExtension: { ".js": ".mjs" },
    platform: "node",
    sourcemap: "inline",
  });
} else {
  const out = mode === "--out" ? folder : join(here, "dist");
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  await build({
    ...common,
    entryPoints: { app: "src/main.tsx", style: "src/main.css" },
    outdir: out,
    minify: true,
    legalComments: "none",
    banner: { js: `/*! This file includes Preact:\n\n${readFileSync(join(here, "node_modules", "preact", "LICENSE"), "utf8").trim()}\n*/` },
    define: { "process.env.NODE_ENV": '"production"' },
  });
  // The version in the query lets browsers keep the file for good: see dashboard.go.
  const version = (name) => createHash("sha256").update(readFileSync(join(out, name))).digest("hex").slice(0, 16);
  const page = readFileSync(join(here, "src", "index.html"), "utf8")
    .replace("app.js", `app.js?v=${version("app.js")}`)
    .replace("style.css", `style.css?v=${version("style.css")}`);
  writeFileSync(join(out, "index.html"), page);
  writeFileSync(join(out, "icon.svg"), readFileSync(join(here, "src", "icon.svg")));
}
