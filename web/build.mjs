// Bundles src/ into one HTML file with nothing to load: node build.mjs OUTPUT. The place of the data stays open; the
// program fills it. Beside it the lab, which a server gives out: lab.html, lab.js, lab.css.
import { build } from 'esbuild';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const output = process.argv[2];
if (!output) throw new Error('usage: node build.mjs OUTPUT');
const script = (
  await build({ entryPoints: ['src/main.js'], bundle: true, minify: true, write: false, format: 'iife', target: 'es2020', legalComments: 'none' })
).outputFiles[0].text;
const style = (await build({ entryPoints: ['src/style.css'], minify: true, write: false })).outputFiles[0].text;
const page = await readFile('src/page.html', 'utf8');
const lab = (name) => join(dirname(output), name);
await build({ entryPoints: ['src/lab/lab.js'], bundle: true, minify: true, outfile: lab('lab.js'), format: 'iife', target: 'es2020', legalComments: 'none' });
await build({ entryPoints: ['src/lab/lab.css'], bundle: true, minify: true, outfile: lab('lab.css') });
await copyFile('src/lab/lab.html', lab('lab.html'));
// The page last: a build that it is newer than is done.
// Functions as replacements: `$` in the script means itself.
await writeFile(
  output,
  page.replace('/*STYLE*/', () => style.trim()).replace('/*SCRIPT*/', () => script.trim().replaceAll('</script', '<\\/script')),
);
