// Writes down which sources the build is of, so that a test can tell without Node whether it is current.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";

const out = "../src/separatrix/explore/static";
const listed = (folder) =>
  readdirSync(folder, { withFileTypes: true })
    .flatMap((one) => (one.isDirectory() ? listed(`${folder}/${one.name}`) : [`${folder}/${one.name}`]));
const digest = (names, base) => {
  const hash = createHash("sha256");
  for (const name of names.sort()) hash.update(`${name}\0`).update(readFileSync(`${base}${name}`)).update("\0");
  return hash.digest("hex");
};
const settings = ["package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "stamp.mjs"];
const sources = digest([...listed("src"), ...listed("public"), ...settings], "./");
const built = digest(["explorer.css", "explorer.js", "index.html"], `${out}/`);
writeFileSync(`${out}/build.json`, `${JSON.stringify({ sources, built }, null, 2)}\n`);
