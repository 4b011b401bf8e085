// The page as a person meets it: opened from a file in headless Chromium, clicked, and its numbers against the JSON.
// RIDGELINE is the program; CHROMIUM the browser.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import puppeteer from 'puppeteer-core';
import { bytes, seconds } from './src/format.js';

const folder = mkdtempSync(join(tmpdir(), 'ridgeline-page-'));
const ridgeline = (...args) => execFileSync(process.env.RIDGELINE, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
let browser;

before(async () => {
  browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'], headless: true, timeout: 120000 });
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

/** The window that pages are opened in, one after the other: a new one takes seconds of a processor, its process most of them. */
let page;
let faults;

/** Opens a page; whatever goes wrong in it or is asked of the network is kept in `faults`. */
async function open(file, scheme = 'light') {
  if (!page) {
    page = await browser.newPage();
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    page.on('request', (request) => !/^(file|data|blob):/.test(request.url()) && faults.push(`asks for ${request.url()}`));
  }
  faults = [];
  await page.setViewport({ width: 1280, height: 900 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.goto(`file://${file}`);
  await page.waitForFunction('globalThis.ridgeline !== undefined', { timeout: 60000 }).catch(() => {});
  return { page, faults };
}

const kArguments = ['predict', '--model', 'gpt2', '--hardware', 'nvidia-h200-sxm-141gb', '--batch', '4', '--seq', '512', '--precision', 'amp-bf16'];
const file = join(folder, 'prediction.html');
const json = JSON.parse(ridgeline(...kArguments, '--format', 'json', '--html', file));
const text = (page, selector) => page.$eval(selector, (element) => element.textContent);

test('the page carries the licences of the packages in it', () => {
  const page = readFileSync(file, 'utf8');
  for (const words of ['Apache License', 'The Apache Software Foundation', 'Baidu Inc.', 'Permission to use, copy, modify, and/or distribute']) assert.ok(page.includes(words), words);
  assert.ok(!page.includes('CodeMirror') && !page.includes('Marijn Haverbeke'), 'the lab alone has an editor');
});

test('a prediction opens without errors, loads nothing and shows the numbers of the JSON', async () => {
  const { page, faults } = await open(file);
  assert.deepEqual(faults, []);
  const main = await text(page, 'main');
  assert.ok(main.includes(seconds(json.step.time_s)), 'step time');
  assert.ok(main.includes(`${seconds(json.step.low_s)} to ${seconds(json.step.high_s)}`), 'range');
  assert.ok(main.includes(bytes(json.memory.device_used_bytes)), 'memory of the device');
  assert.ok(main.includes(bytes(json.memory.peak_allocated_bytes)), 'peak');
  const shown = await page.evaluate('ridgeline.data.parts[0].prediction');
  const { schema, tool, question, measured, ...prediction } = json; // what an answer is cited by
  assert.ok(schema.startsWith('ridgeline/') && tool.startsWith('ridgeline ') && measured === null);
  assert.equal(question.scenario.model ?? question.changes.find((change) => change.startsWith('model=')).slice(6), 'gpt2');
  assert.deepEqual(shown, prediction);
  assert.equal(await text(page, '#command'), `ridgeline ${kArguments.join(' ')} --format json --html ${file}`, 'what was asked');
});

test('every picture is drawn, and the launches and the peak in them are those of the prediction', async () => {
  const { page, faults } = await open(file);
  for (const id of ['time-by-class', 'limited-by', 'roofline', 'timeline', 'memory'])
    await page.waitForFunction((name) => globalThis.ridgeline.chartAt(name).getWidth() > 200, { timeout: 60000 }, id);
  const part = await page.evaluate('ridgeline.data.parts[0]');
  assert.equal(part.spans.start_us.length, json.step.kernel_count);
  const busy = part.groups.reduce((sum, group) => sum + group.time_s, 0);
  assert.ok(Math.abs(busy / json.step.gpu_busy_s - 1) < 0.01, `${busy} against ${json.step.gpu_busy_s}`);
  const totals = part.memory.at_us.map((_, i) => part.memory.bytes.reduce((sum, row) => sum + row[i], 0));
  assert.equal(Math.max(...totals), json.memory.peak_allocated_bytes);
  assert.deepEqual(faults, []);
});

test('the kernel table sorts by a clicked column and finds what is typed', async () => {
  const { page, faults } = await open(file);
  const column = (n) => page.$$eval(`#kernels tbody tr td:nth-child(${n})`, (cells) => cells.map((cell) => cell.textContent));
  const heads = await page.$$eval('#kernels th', (cells) => cells.map((cell) => cell.textContent));
  const counts = heads.indexOf('count') + 1;
  const button = `#kernels th:nth-child(${counts}) button`;
  const numbers = async () => (await column(counts)).map((cell) => Number(cell.replaceAll(',', '')));
  await page.click(button);
  const falling = await numbers();
  assert.deepEqual(falling, [...falling].sort((a, b) => b - a));
  await page.click(button);
  const rising = await numbers();
  assert.deepEqual(rising, [...rising].sort((a, b) => a - b));
  assert.ok(falling[0] > rising[0]);
  await page.type('input[type=search]', 'layer_norm');
  const rows = await page.$$eval('#kernels tbody tr', (all) => all.map((row) => row.textContent));
  assert.ok(rows.length > 0 && rows.length < falling.length);
  assert.ok(rows.every((row) => row.includes('layer_norm')), rows.join('\n'));
  assert.deepEqual(faults, []);
});

test('light and dark follow the system and the button', async () => {
  const { page, faults } = await open(file, 'dark');
  const ground = () => page.$eval('body', (body) => getComputedStyle(body).backgroundColor);
  const dark = await ground();
  await page.click('#theme');
  assert.notEqual(await ground(), dark);
  assert.deepEqual(faults, []);
});

test('text of the data is shown as text', async () => {
  const scenario = join(folder, 'title.yaml');
  const wicked = join(folder, 'wicked.html');
  writeFileSync(scenario, `title: "</script><!-- <script><img src=x onerror=alert(1)> & <b>"\nhardware: nvidia-t4\nmodel: gpt2\ntraining: {micro_batch: 1, sequence_length: 64, precision: fp32}\n`);
  ridgeline('predict', scenario, '--no-advice', '--html', wicked);
  const { page, faults } = await open(wicked);
  assert.deepEqual(faults, []);
  assert.equal(await text(page, 'h1'), '</script><!-- <script><img src=x onerror=alert(1)> & <b>');
  assert.equal(await page.$('main img'), null);
});

test('the host says how much of the step it makes and where that tips', async () => {
  for (const [batch, words] of [['1', 'faster'], ['64', 'slower']]) {
    const out = join(folder, `host-${batch}.html`);
    const result = JSON.parse(ridgeline('predict', '--model', 'gpt2', '--hardware', 'nvidia-h200-sxm-141gb', '--batch', batch, '--seq', '128', '--precision', 'bf16', '--no-advice', '--format', 'json', '--html', out));
    const { page, faults } = await open(out);
    const said = await text(page, '#host');
    assert.ok(said.includes(seconds(result.host.time_s)) && said.includes(seconds(result.host.exposed_s)), said);
    assert.ok(said.includes(words), said);
    assert.equal(said.includes('not measured'), !result.host.known);
    if (!result.host.known) assert.ok(result.host.scales_seen[0] <= result.host.scale && result.host.scale <= result.host.scales_seen[1]);
    assert.deepEqual(faults, []);
  }
});

test('where memory runs out the page says where', async () => {
  const out = join(folder, 'out.html');
  const result = JSON.parse(ridgeline('predict', '--model', 'gpt2-xl', '--hardware', 'nvidia-t4', '--batch', '8', '--seq', '1024', '--precision', 'fp32', '--no-advice', '--format', 'json', '--html', out));
  assert.equal(result.memory.fits, false);
  const { page, faults } = await open(out);
  assert.deepEqual(faults, []);
  assert.ok((await text(page, 'main')).includes(bytes(result.memory.out_of_memory.missing_bytes)));
});

test('a comparison shows each side and differences that add up to the whole', async () => {
  const out = join(folder, 'comparison.html');
  const result = JSON.parse(ridgeline('compare', '--model', 'gpt2', '--hardware', 'nvidia-a100-sxm4-40gb', '--batch', '2', '--seq', '256', '--with', 'training.attention=eager', 'nvidia-h200-sxm-141gb', '--format', 'json', '--html', out));
  const { page, faults } = await open(out);
  assert.deepEqual(await page.evaluate('ridgeline.data.comparison'), result);
  const main = await text(page, 'main');
  for (const side of result.scenarios) assert.ok(main.includes(side.label) && main.includes(seconds(side.step.time_s)), side.label);
  for (const [i, difference] of result.differences.entries()) {
    const drawn = await page.evaluate((n) => globalThis.ridgeline.chartAt(`difference-${n}`).getOption().series[1].data.map((d) => d.row), i + 1);
    const sum = drawn.filter((row) => row.by !== undefined).reduce((total, row) => total + row.by, 0);
    assert.ok(Math.abs(sum - difference.time_s) < 1e-9, `${sum} against ${difference.time_s}`);
    assert.ok(Math.abs(drawn.at(-1).to - result.scenarios[i + 1].step.time_s) < 1e-9);
  }
  const buttons = await page.$$('#parts button');
  assert.equal(buttons.length, result.scenarios.length + 1);
  await buttons[2].click();
  assert.ok((await text(page, 'main')).includes(seconds(result.scenarios[1].step.gpu_busy_s)));
  assert.deepEqual(faults, []);
});

test('a sweep shows its points and marks the answer; the measures of the picture can be changed', async () => {
  const file = join(folder, 'sweep.yaml');
  writeFileSync(file, `title: A small sweep
scenario: {hardware: nvidia-t4, model: gpt2, training: {micro_batch: 1, sequence_length: 128, precision: fp32}}
axes:
  training.micro_batch: [1, 2, 4, 256]
  hardware: [nvidia-t4, nvidia-rtx-3090]
goal: {search: pareto, of: [step_time, memory]}
`);
  const out = join(folder, 'sweep.html');
  const result = JSON.parse(ridgeline('sweep', file, '--format', 'json', '--html', out));
  assert.equal(result.points.length, 8);
  const { page, faults } = await open(out);
  assert.deepEqual(await page.evaluate('ridgeline.data.sweep'), result);
  const series = () => page.evaluate('ridgeline.chartAt("sweep").getOption().series.map((s) => s.data.map((d) => d.value))');
  const drawn = await series();
  assert.equal(drawn.slice(0, -1).flat().length, result.points.filter((p) => p.error === undefined).length);
  assert.equal(drawn.at(-1).length, result.best.length);
  await page.select('select[aria-label=up]', 'mfu');
  assert.notDeepEqual(await series(), drawn);
  const best = await page.$$eval('#best tbody tr', (all) => all.length);
  assert.equal(best, result.best.length);
  assert.deepEqual(faults, []);
});

test('a step of several GPUs shows its communication and one line per stream', async () => {
  const several = join(folder, 'several.html');
  const answer = JSON.parse(ridgeline('predict', '--model', 'gpt2', '--cluster', 'h200-x4', '--batch', '4', '--seq', '512', '--precision', 'amp-bf16', '--format', 'json', '--html', several));
  const { page, faults } = await open(several);
  assert.deepEqual(faults, []);
  const shown = await text(page, '#parallel');
  assert.ok(shown.includes(seconds(answer.parallel.exposed_communication_s)), 'exposed');
  assert.ok(shown.includes(bytes(answer.parallel.ranks[0].memory.communicator_bytes)), 'communicators');
  const rows = await page.$$eval('#communication tbody tr', (all) => all.length);
  assert.equal(rows, answer.parallel.communication.length);
  const spans = await page.evaluate('ridgeline.data.parts[0].spans');
  assert.ok(new Set(spans.stream).size > 1, 'more than one stream');
  const lanes = await page.evaluate("ridgeline.chartAt('timeline').getOption().yAxis[0].data");
  assert.equal(lanes.length, 1 + new Set(spans.stream).size + 2);
  assert.deepEqual(lanes.slice(-2), ['layers', 'phases']);
});
