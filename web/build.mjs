// Bundles src/ into one HTML file with nothing to load: node build.mjs OUTPUT. The place of the data stays open; the
// program fills it. Beside it the lab, which a server gives out: lab.html, lab.js, lab.css; and NOTICE.txt, the licences
// of the packages in either bundle, which each bundle also carries as its first comment.
import { build } from 'esbuild';
import { copyFile, readFile, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const output = process.argv[2];
if (!output) throw new Error('usage: node build.mjs OUTPUT');
const lab = (name) => join(dirname(output), name);

const bundle = (entry) =>
  build({ entryPoints: [entry], bundle: true, minify: true, write: false, metafile: true, format: 'iife', target: 'es2020', legalComments: 'none' });

/** Folders of the packages whose code is in a bundle. */
function packages(bundles) {
  const folders = new Set();
  for (const { metafile } of bundles)
    for (const { inputs } of Object.values(metafile.outputs))
      for (const file of Object.keys(inputs)) {
        const found = file.match(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//);
        if (found) folders.add(found[1]);
      }
  return [...folders].sort();
}

/** Name, version and licence of a package, with every file in which it states them. */
async function notice(folder) {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const stated = [];
  for (const place of [folder, join(folder, 'licenses')]) {
    const files = await readdir(place).catch(() => []);
    for (const file of files.sort()) if (/^(licen[cs]e|notice|copying|copyright)/i.test(file) && file !== 'licenses') stated.push((await readFile(join(place, file), 'utf8')).trim());
  }
  if (stated.length === 0) throw new Error(`${folder}: states no licence`);
  return `${name} ${version} (${license})\n\n${stated.join('\n\n')}`;
}

const page = await bundle('src/main.js');
const workbench = await bundle('src/lab/lab.js');
const notices = async (...bundles) => (await Promise.all(packages(bundles).map(notice))).join(`\n\n${'-'.repeat(78)}\n\n`);
// A licence that ends a comment would end it here too.
const script = async (made) =>
  `/*!\nThis file contains code of the packages below.\n\n${(await notices(made)).replaceAll('*/', '* /')}\n*/\n${made.outputFiles[0].text}`;
const style = (await build({ entryPoints: ['src/style.css'], minify: true, write: false })).outputFiles[0].text;
const html = await readFile('src/page.html', 'utf8');
await writeFile(lab('NOTICE.txt'), `${await notices(page, workbench)}\n`);
await writeFile(lab('lab.js'), await script(workbench));
await build({ entryPoints: ['src/lab/lab.css'], bundle: true, minify: true, outfile: lab('lab.css') });
await copyFile('src/lab/lab.html', lab('lab.html'));
// The page last: a build that it is newer than is done.
// Functions as replacements: `$` in the script means itself.
const code = (await script(page)).trim();
await writeFile(
  output,
  html.replace('/*STYLE*/', () => style.trim()).replace('/*SCRIPT*/', () => code.replaceAll('</script', '<\\/script')),
);
