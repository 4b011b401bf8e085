// The lab as a person meets it: served by `ridgeline serve`, opened in headless Chromium, moved, typed into and clicked;
// its numbers against the JSON of the commands. RIDGELINE is the program; CHROMIUM the browser.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, test as alone } from 'node:test';
import { bytes, percent, seconds } from './src/format.js';
import { segmentsAt, stretches, timeOf, totals } from './src/lab/allocator.js';
import { errorsOf, groupKeys, groupOf } from './src/lab/calibration_view.js';
import { difference } from './src/lab/editor.js';
import { caseInWords, casesOf, collectivesOf, questionInWords, questionsOf, sheetOf, shippedSweepOf } from './src/lab/commands.js';
import { wrapped } from './src/lab/export.js';
import { gemmOf, lastWave, stairsOf } from './src/lab/gemm_view.js';
import { mistakeIn } from './src/lab/field.js';
import { placed } from './src/lab/kernel.js';
import { powerCurve } from './src/lab/power_view.js';
import { command, configuration, flow, fragment, fromFragment, yaml } from './src/lab/state.js';
import { mistakesOf, refusedField, sweepOf, valuesOf } from './src/lab/sweep_view.js';
import { cellsOf } from './src/sections/heat_map.js';
import { withinLimits } from './src/sections/parallel_coordinates.js';
import { kLevels } from './src/sections/roofline.js';
import { runsOf } from './src/sections/runs.js';
import { drawnArea, drawnBoxes } from './src/shapes.js';
import { address, browser, drawnAfter, open, opened, serve, slide, view } from './window.js';

/** Most of a test's time is waiting, so two run beside each other (see the end); `alone`: what fills both cores. */
const besides = [];
const test = (...one) => besides.push(one);

const answer = (page) => page.evaluate('ridgeline.lab.whole()'); // with what the view at hand does without
const text = (page, selector) => page.$eval(selector, (element) => element.textContent);

/** The text in the editor, and keys pressed in it: 'Control+End' for keys together. */
const written = (page) => page.$$eval('#yaml .cm-line', (lines) => lines.map((line) => line.textContent).join('\n'));
async function press(page, ...all) {
  for (const keys of all.map((one) => one.split('+'))) {
    for (const key of keys) await page.keyboard.down(key);
    for (const key of keys.reverse()) await page.keyboard.up(key);
  }
}
/** Puts the cursor at the end of the line that has such a text. */
async function endOf(page, part) {
  const lines = await page.$$('#yaml .cm-line');
  for (const line of lines) if ((await line.evaluate((element) => element.textContent)).includes(part)) { await line.click(); return press(page, 'End'); }
  assert.fail(`no line with ${part}`);
}

/** What the command of a state prints. */
function printed(state) {
  const line = command(state).replace(/^ridgeline/, `"${process.env.RIDGELINE}"`);
  return JSON.parse(execFileSync('sh', ['-c', `${line} --no-advice --format json`], { encoding: 'utf8', maxBuffer: 1 << 28 }));
}
const kParts = ['step', 'utilization', 'memory', 'time_by_class', 'time_by_phase', 'limited_by', 'kernels', 'notes'];
function sameAs(shown, said) {
  for (const key of kParts) assert.deepEqual(shown[key], said[key], key);
}

test('the lab opens without a message, asks nobody else, and shows the numbers of the command', async () => {
  const { page, faults, close } = await open();
  const state = await page.evaluate('ridgeline.asked.current()');
  const said = printed(state);
  sameAs(await answer(page), said);
  const shown = await text(page, '#content');
  for (const part of [seconds(said.step.time_s), `${seconds(said.step.low_s)} to ${seconds(said.step.high_s)}`, bytes(said.memory.device_used_bytes)]) assert.ok(shown.includes(part), part);
  for (const id of ['time-by-class', 'limited-by', 'roofline']) assert.ok(await page.evaluate((name) => globalThis.ridgeline.chartAt(name).getWidth() > 200, id), id);
  assert.deepEqual(faults, []);
  await close();
});

test('every view opens and draws', async () => {
  const { page, faults, close } = await open();
  const expected = { timeline: '#timeline canvas', memory: '#memory canvas', kernels: '#kernels tbody tr', caches: '#cache-hits canvas', power: '#power canvas', advice: '#sensitivity tbody tr', compare: '#content h2', sweep: '#run-sweep', calibration: '#calibration canvas', scenario: '#yaml', exercises: '#exercise-list button', gemm: '#staircase canvas', teacher: '#teacher-exercises tbody tr', overview: '#roofline canvas' };
  for (const [id, selector] of Object.entries(expected)) {
    await page.click(`[data-view=${id}]`);
    await page.waitForSelector(selector, { timeout: 60000 });
    assert.equal(await page.$eval(`[data-view=${id}]`, (b) => b.getAttribute('aria-pressed')), 'true');
  }
  assert.deepEqual(faults, []);
  await close();
});

test('a moved slider is predicted, marked with its source, undone, and held by the link', async () => {
  const { page, faults, close } = await open();
  const before = (await answer(page)).step.time_s;
  await slide(page, 'sm.count', -1);
  const state = await page.evaluate('ridgeline.asked.current()');
  assert.equal(state.set['sm.count'], '66');
  const halved = await answer(page);
  assert.ok(halved.step.time_s > 1.5 * before, `${halved.step.time_s} after ${before}`);
  sameAs(halved, printed(state));
  const sheet = JSON.parse(execFileSync(process.env.RIDGELINE, ['hardware', 'nvidia-h200-sxm-141gb', '--format', 'json'], { encoding: 'utf8' })).values['sm.count'];
  assert.ok((await page.$eval('[data-key="sm.count"]', (r) => r.closest('.slider').title)).includes(sheet.source));
  await drawnAfter(page, () => page.click('#do-undo'));
  assert.equal((await answer(page)).step.time_s, before);
  await drawnAfter(page, () => page.click('#do-redo'));
  assert.equal((await answer(page)).step.time_s, halved.step.time_s);
  await page.click('#do-link');
  const hash = await page.evaluate('location.hash');
  assert.deepEqual(faults, []);
  await close();
  const again = await open(hash);
  assert.deepEqual(await again.page.evaluate('ridgeline.asked.current()'), state);
  assert.equal((await answer(again.page)).step.time_s, halved.step.time_s);
  assert.deepEqual(again.faults, []);
  await again.close();
});

test('choices change the question, and a mistake is told where it is made', async () => {
  const { page, faults, close } = await open();
  const choose = async (label, value) => {
    const id = await page.$$eval('.field label', (all, name) => all.find((l) => l.textContent === name).htmlFor, label);
    await drawnAfter(page, () => page.select(`#${id}`, value));
  };
  await choose('Precision', 'amp-bf16');
  await choose('Network', 'gpt2');
  await choose('Chip', 'cluster:h200-x4');
  const shown = await answer(page);
  assert.equal(shown.parallel.gpus, 4);
  assert.equal(shown.question.scenario.training.precision, 'amp-bf16');
  sameAs(shown, printed(await page.evaluate('ridgeline.asked.current()')));
  assert.ok((await text(page, '#parallel')).includes(seconds(shown.parallel.exposed_communication_s)));
  await page.evaluate('ridgeline.asked.update((s) => { s.scenario.training.micro_batch = 0; })');
  await page.waitForFunction('!document.getElementById("trouble").hidden');
  assert.equal(await page.$eval('#trouble', (p) => p.dataset.key), 'training.micro_batch');
  await drawnAfter(page, () => page.click('#do-undo'));
  assert.equal(await page.$eval('#trouble', (p) => p.hidden), true);
  assert.deepEqual(faults.filter((fault) => !fault.includes('400 (Bad Request)')), []);
  await close();
});

test('against a pinned answer the differences add up', async () => {
  const { page, faults, close } = await open();
  const first = (await answer(page)).step.time_s;
  await view(page, 'compare');
  await drawnAfter(page, () => page.click('#pin-here')); // as the button above does
  await view(page, 'overview');
  await slide(page, 'clock.sustained', -0.5);
  const second = (await answer(page)).step.time_s;
  const shown = await text(page, '#against');
  assert.ok(second > first && shown.includes(`+${seconds(second - first)}`), shown);
  await view(page, 'compare');
  const rows = await page.evaluate('ridgeline.chartAt("difference-1").getOption().series[1].data.map((d) => d.row)');
  const sum = rows.filter((row) => row.by !== undefined).reduce((total, row) => total + row.by, 0);
  assert.ok(Math.abs(sum - (second - first)) < 1e-9, `${sum} against ${second - first}`);
  assert.deepEqual(faults, []);
  await close();
});

test('the roofline holds kernels against each level, and its numbers follow', async () => {
  const { page, faults, close } = await open();
  const { page: { groups, device } } = await answer(page);
  for (const [key, level] of Object.entries(kLevels)) {
    await drawnAfter(page, () => page.select('#roofline-level', key));
    const drawn = await page.evaluate("ridgeline.chartAt('roofline').getOption().series.filter((s) => s.type === 'scatter').flatMap((s) => s.data.map((d) => [d[0], d[3]]))");
    assert.ok(drawn.length > 5);
    for (const [x, i] of drawn) assert.ok(Math.abs(x / Math.max(1 / 64, groups[i].flops / level.bytes(groups[i])) - 1) < 1e-9, groups[i].name);
    const slope = await page.evaluate("ridgeline.chartAt('roofline').getOption().series[0].data[0]");
    assert.ok(Math.abs(slope[1] / slope[0] / level.rate(device) - 1) < 1e-9);
  }
  await page.$eval('#roofline-numbers', (details) => { details.open = true; });
  await page.waitForFunction('/shared memory/.test(document.querySelector("#roofline-numbers thead")?.textContent)');
  await drawnAfter(page, () => page.select('#roofline-level', 'dram'));
  assert.deepEqual(faults, []);
  await close();
});

test('a pipeline has a lane a rank, and a kernel of the timeline leads to its inside', async () => {
  const { page, faults, close } = await open();
  await view(page, 'timeline'); // where the picture of the ranks comes new
  await drawnAfter(page, () => page.evaluate(() => globalThis.ridgeline.asked.update((s) => {
    s.scenario = { cluster: 'h200-x4', model: 'gpt2', training: { micro_batch: 2, sequence_length: 256, precision: 'amp-bf16', gradient_accumulation: 4, parallel: { pipeline: 4 } } };
    s.view = 'timeline';
  })));
  const { page: { lanes, spans, groups }, parallel } = await answer(page);
  assert.equal(lanes.length, 4);
  await page.waitForSelector('#ranks canvas');
  assert.deepEqual(await page.evaluate("ridgeline.chartAt('ranks').getOption().yAxis[0].data"), lanes.map(({ rank }) => `rank ${rank}`));
  assert.equal((await page.$$('#rank-classes tbody tr')).length, parallel.ranks.length);
  await page.$eval('#ranks', (place) => place.scrollIntoView({ block: 'center' }));
  const over = async (id, at, lane) => {
    const [x, y] = await page.evaluate(([name, t, row]) => { const box = document.getElementById(name).getBoundingClientRect(); const [left, top] = globalThis.ridgeline.chartAt(name).convertToPixel({ gridIndex: 0 }, [t, row]); return [box.left + left, box.top + top]; }, [id, at, lane]);
    await page.mouse.move(x - 3, y);
    await page.mouse.move(x, y);
    return [x, y];
  };
  await over('ranks', (lanes[2].start_us[0] + lanes[2].end_us[0]) / 2, 2);
  await page.waitForFunction((name) => document.getElementById('ranks').textContent.includes(`${name}, rank 2`), {}, lanes[2].pass[0]);
  // The longest kernel: told where the pointer is, and opened by a click.
  const longest = spans.duration_us.reduce((most, d, i) => (d > spans.duration_us[most] ? i : most), 0);
  await page.$eval('#timeline', (place) => place.scrollIntoView({ block: 'center' }));
  const used = [...new Set(spans.stream)].sort((a, b) => a - b);
  const [x, y] = await over('timeline', spans.start_us[longest] + spans.duration_us[longest] / 2, 1 + used.indexOf(spans.stream[longest]));
  await page.waitForFunction((name) => document.getElementById('timeline').textContent.includes(name), {}, `kernel ${longest + 1} of ${spans.group.length}`);
  await drawnAfter(page, () => page.mouse.click(x, y));
  await page.waitForSelector('#kernel');
  assert.equal((await answer(page)).kernel.name, groups[spans.group[longest]].name);
  assert.deepEqual(faults, []);
  await close();
});

test('runs of phases and layers follow one another and hold every kernel of the first stream', async () => {
  const spans = { phase_names: ['forward', 'backward'], stream: [0, 0, 1, 0, 0], phase: [0, 0, 0, 0, 1], layer: [-1, 0, 0, 0, 0], start_us: [0, 10, 12, 20, 40], duration_us: [10, 5, 50, 10, 5] };
  assert.deepEqual(runsOf(spans, [], false).map(({ from, to, phase, kernels }) => [from, to, phase, kernels]), [[0, 30, 'forward', 3], [40, 45, 'backward', 1]]);
  assert.deepEqual(runsOf(spans, [], true).map(({ from, to, phase, layer, kernels }) => [from, to, phase, layer, kernels]), [[10, 30, 'forward', 0, 2], [40, 45, 'backward', 0, 1]]);
  assert.deepEqual(runsOf(spans, [{ kernel: 1, shift: 100 }], true).map(({ from }) => from), [10, 40, 110]);
  const { page, faults, close } = await open();
  await view(page, 'timeline');
  const { page: { spans: all }, step } = await answer(page);
  const phases = runsOf(all, [], false);
  assert.equal(phases.reduce((sum, { kernels }) => sum + kernels, 0), step.kernel_count);
  assert.ok(phases.every(({ from, to }, i) => to > from && (i === 0 || from >= phases[i - 1].to)));
  const layers = runsOf(all, [], true);
  assert.deepEqual(layers.filter(({ phase }) => phase === 'forward').map(({ layer }) => layer), Array.from({ length: 24 }, (_, i) => i));
  // The pointer over the second phase tells it.
  const at = await page.evaluate(([x, lanes]) => { const place = document.getElementById('timeline'); place.scrollIntoView({ block: 'center' }); const box = place.getBoundingClientRect(); const [left, top] = globalThis.ridgeline.chartAt('timeline').convertToPixel({ gridIndex: 0 }, [x, lanes - 1]); return [box.left + left, box.top + top]; }, [(phases[1].from + phases[1].to) / 2, 4]);
  await page.mouse.move(at[0] - 3, at[1]);
  await page.mouse.move(...at);
  await page.waitForFunction((said) => document.getElementById('timeline').textContent.includes(said), {}, `${phases[1].kernels.toLocaleString('en')} kernels`);
  assert.deepEqual(faults, []);
  await close();
});

test('shapes of a chart cover what they stand for', () => {
  const api = { coord: ([x, y]) => [10 + x * 2, 100 - y], size: () => [0, 10], visual: () => '#000' };
  const params = { coordSys: { x: 10, width: 200 } };
  const { shape: { boxes } } = drawnBoxes([{ from: 0, to: 1, lane: 0 }, { from: 1, to: 2, lane: 0 }, { from: 1, to: 2, lane: 1 }, { from: 50, to: 50, lane: 0 }], 100)(params, api);
  assert.deepEqual([...boxes].map((v) => Math.round(v * 10) / 10), [10, 96.9, 4, 6.2, 12, 95.9, 2, 6.2, 110, 96.9, 0.5, 6.2]);
  const area = (points) => { let sum = 0; for (let i = 0; i < points.length; i += 2) { const j = (i + 2) % points.length; sum += points[i] * points[j + 1] - points[j] * points[i + 1]; } return Math.abs(sum) / 2; };
  const steps = drawnArea([0, 20, 50, 100], [0, 0, 10, 10], [30, 50, 50, 20], { opacity: 1 })(params, api).shape.points;
  assert.ok(Math.abs(area(steps) - 2 * (20 * 30 + 30 * 50 + 50 * 40)) < 1e-6, area(steps));
  // Ten thousand changes within a hundred pixels keep their extremes and few points.
  const many = Array.from({ length: 10000 }, (_, i) => i / 100);
  const dense = drawnArea(many, many.map(() => 0), many.map((_, i) => (i % 7) + (i === 5001 ? 60 : 0)), {})(params, api).shape.points;
  assert.ok(dense.length < 5000 && Math.min(...dense.filter((_, i) => i % 2)) <= 100 - 60, dense.length);
});

/** Commands, flags, and paths of files. */
const kTerminal = /\bridgeline [a-z]+ |(^|\s)--[a-z]|(^|\s)\/[\w.-]+\/|\bhw\/|scenarios\//m;

test('every view names its scenario, and no view shows words of a terminal or paths of this machine', async () => {
  const { page, faults, close } = await open();
  for (const id of await page.$$eval('[data-view]', (all) => all.map((button) => button.dataset.view).filter(Boolean))) {
    await opened(id)(page);
    if (id === 'exercises') await page.waitForSelector('#guess');
    const state = await page.evaluate('ridgeline.asked.current()');
    assert.equal(await text(page, '#configuration'), `Scenario: ${configuration(state)}`);
    assert.ok(await page.$eval('#asked', (footer) => footer.checkVisibility()));
    assert.doesNotMatch(await page.evaluate('document.body.innerText'), kTerminal, id);
  }
  assert.equal(configuration({ scenario: { model: 'gpt2', cluster: 'h200-x4', training: { micro_batch: 2, sequence_length: 8, precision: 'fp32', tf32: true } }, set: { 'sm.count': '66' }, engine: 'roofline' }), 'gpt2, h200-x4, 2 × 8, fp32, tf32 true, sm.count 66, engine roofline');
  assert.deepEqual(wrapped(['a bb ccc', 'x'.repeat(45)], 16 + 20 * 7), ['a bb ccc', 'x'.repeat(20), 'x'.repeat(20), 'x'.repeat(5)]);
  assert.deepEqual(faults, []);
  await close();
});

test('bytes have ticks at powers of two, times at round numbers', async () => {
  const { page, faults, close } = await open();
  await view(page, 'memory');
  const ticks = (id, dimension) => page.evaluate(([name, axis]) => globalThis.ridgeline.chartAt(name).getModel().getComponent(`${axis}Axis`, 0).axis.scale.getTicks().map((t) => t.value), [id, dimension]);
  const round = async (id, dimension) => {
    const all = await ticks(id, dimension);
    const step = all[1] - all[0];
    assert.ok(all.length >= 3 && all.length <= 8 && Number.isInteger(Math.log2(step)) && all.every((v) => v % step === 0), `${id}: ${all}`);
  };
  await round('memory', 'y');
  await view(page, 'caches');
  await round('cache-levels', 'x');
  assert.deepEqual(faults, []);
  await close();
});

test('a kernel shows its blocks, tiles, occupancy, traffic and equation', async () => {
  const { page, faults, close } = await open();
  await view(page, 'kernels');
  await drawnAfter(page, () => page.click('#kernels tbody button'));
  const { kernel, page: shown } = await answer(page);
  assert.ok(shown.groups.some((g) => g.name === kernel.name && g.shape === kernel.shape));
  assert.ok((await text(page, '#kernel')).includes(kernel.name));
  assert.ok((await text(page, '#occupancy')).includes(`${kernel.occupancy.warps_per_sm} of ${kernel.occupancy.most_warps_per_sm}`));
  const terms = await page.$$eval('#equation tbody tr', (rows) => rows.map((row) => row.textContent));
  assert.equal(terms.length, kernel.terms.length);
  kernel.terms.forEach((term, i) => assert.ok(terms[i].includes(seconds(term.time_s)), terms[i]));
  assert.ok((await page.$$('#gantt svg rect')).length > 0);
  assert.deepEqual(faults, []);
  await close();
});

test('a point of the roofline leads to its kernel, and the largest batch is found', async () => {
  const { page, faults, close } = await open();
  const [x, y] = await page.evaluate(() => {
    const chart = globalThis.ridgeline.chartAt('roofline');
    document.getElementById('roofline').scrollIntoView({ block: 'center' });
    const series = chart.getOption().series.map((s, index) => ({ s, index })).filter(({ s }) => s.type === 'scatter' && s.data.length);
    const { s, index } = series[0];
    const largest = [...s.data].sort((a, b) => b[2] - a[2])[0];
    const [left, top] = chart.convertToPixel({ seriesIndex: index }, largest.slice(0, 2));
    const box = document.getElementById('roofline').getBoundingClientRect();
    return [box.left + left, box.top + top];
  });
  await drawnAfter(page, () => page.mouse.click(x, y));
  await page.waitForSelector('#kernel');
  assert.equal(await page.evaluate('ridgeline.asked.current().view'), 'kernels');
  await view(page, 'memory');
  await page.click('#fit');
  await page.waitForFunction('/sequences/.test(document.getElementById("fit-told").textContent)', { timeout: 60000 });
  const said = JSON.parse(execFileSync('sh', ['-c', `${command(await page.evaluate('ridgeline.asked.current()')).replace('ridgeline predict', `"${process.env.RIDGELINE}" fit`)} --format json`], { encoding: 'utf8' }));
  assert.ok((await text(page, '#fit-told')).startsWith(`${said.micro_batch.toLocaleString('en')} sequences`));
  assert.deepEqual(faults, []);
  await close();
});

/** A small page of an allocator: segments of 100 and 50 with blocks that come and go. */
const kSmall = {
  blocks: { address: [0, 30, 30, 200], bytes: [30, 40, 20, 50], from: [0, 0, 2, 1], to: [null, 2, null, 3] },
  segments: { address: [0, 200], bytes: [100, 50], from: [0, 1], to: [null, null], pool: ['large', 'small'], stream: [0, 0] },
  moments: { count: 4, first: [0, 2], at_us: [0, 7] },
};

test('segments at a moment have their blocks, gaps and sums', () => {
  assert.deepEqual(segmentsAt(kSmall, 0).map((s) => [s.used, s.blocks, s.free]), [[70, [0, 1], [{ address: 70, bytes: 30 }]]]);
  assert.deepEqual(segmentsAt(kSmall, 2).map((s) => [s.used, s.blocks, s.free]), [[50, [0, 2], [{ address: 50, bytes: 50 }]], [50, [3], []]]);
  assert.deepEqual(totals(segmentsAt(kSmall, 3)), { used: 50, reserved: 150, segments: 2, freeBlocks: 2, free: 100, largest: 50 });
  assert.deepEqual([0, 1, 2, 3].map((m) => timeOf(kSmall, m)), [0, 0, 7, 7]);
  const map = stretches(kSmall);
  assert.deepEqual([map.bytes, map.place(30), map.place(150), map.place(210), map.back(110)], [150, 30, null, 110, 210]);
  assert.equal(stretches(kSmall, 'small').bytes, 50);
});

/** Moves a slider of a view and waits for what it draws. */
const turnTo = async (page, selector, value) => {
  await page.$eval(selector, (range, to) => { range.value = to; range.dispatchEvent(new Event('input')); }, value);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
};
/** Where a picture is, once it is in sight. */
const boxOf = (page, id) => page.$eval(`#${id}`, (canvas) => { canvas.scrollIntoView({ block: 'center' }); const { left, top, width, height } = canvas.getBoundingClientRect(); return { left, top, width, height }; });

test('blocks over time and segments at a moment are those of the answer, and the link holds the moment', async () => {
  const { page, faults, close } = await open();
  await view(page, 'memory');
  const { page: { blocks, categories }, memory } = await answer(page);
  assert.equal(blocks.peak.allocated_bytes, memory.peak_allocated_bytes);
  const toldAt = (moment) => {
    const sum = totals(segmentsAt(blocks, moment));
    return `${bytes(sum.used)} in use of ${bytes(sum.reserved)} reserved in ${sum.segments.toLocaleString('en')} segments; ${bytes(sum.free)} free in ${sum.freeBlocks.toLocaleString('en')} gaps, the largest ${bytes(sum.largest)}`;
  };
  assert.ok((await text(page, '#moment-told')).includes(toldAt(blocks.peak.moment)));
  assert.equal(totals(segmentsAt(blocks, blocks.peak.moment)).used, memory.peak_allocated_bytes);
  await turnTo(page, '#moment', 40);
  assert.ok((await text(page, '#moment-told')).includes(toldAt(40)));
  await page.focus('#moment');
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction((said) => document.getElementById('moment-told').textContent.includes(said), {}, toldAt(41));
  assert.equal(await page.evaluate('ridgeline.asked.current().look.moment'), 41);
  await page.click('#segments-numbers summary');
  await page.waitForSelector('#segments-numbers tbody tr');
  await page.waitForFunction((rows) => document.querySelectorAll('#segments-numbers tbody tr').length === rows, {}, segmentsAt(blocks, 41).length); // those out of sight come last
  const painted = (id) => page.$eval(`#${id}`, (canvas) => new Set(new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size);
  assert.ok(await painted('blocks') > 5 && await painted('segments') > 3, 'colours of categories');
  // The pointer over the segments tells what lies there.
  const { left, top } = await boxOf(page, 'segments');
  await page.mouse.move(left + 40, top + 6);
  await page.waitForFunction('!document.querySelector("#segments + .tip").hidden');
  const tip = await text(page, '#segments + .tip');
  assert.ok(/segment of .* pool/.test(tip), tip);
  // A click on the blocks chooses the moment there.
  const over = await boxOf(page, 'blocks');
  await page.mouse.click(over.left + over.width / 2, over.top + over.height / 2);
  await page.waitForFunction('ridgeline.asked.current().look.moment > 41');
  assert.ok(categories.some((name) => name === 'weights'));
  await page.select('#along', 'order');
  await page.click('#do-link');
  const state = await page.evaluate('ridgeline.asked.current()');
  const hash = await page.evaluate('location.hash');
  assert.deepEqual(faults, []);
  await close();
  const again = await open(hash);
  assert.equal(await again.page.$eval('#moment', (range) => Number(range.value)), state.look.moment);
  assert.equal(await again.page.$eval('#along', (select) => select.value), 'order');
  assert.deepEqual(await again.page.evaluate('ridgeline.asked.current()'), state);
  assert.deepEqual(again.faults, []);
  await again.close();
});

test('a run out of memory says what was asked for and what was free', async () => {
  const { page, faults, close } = await open();
  await view(page, 'memory');
  await drawnAfter(page, () => page.evaluate('ridgeline.asked.update((s) => { s.scenario.training.micro_batch = 512; })'));
  const { page: { blocks }, memory } = await answer(page);
  const { failure } = blocks;
  assert.equal(failure.missing_bytes, memory.out_of_memory.missing_bytes);
  assert.equal(failure.capacity_bytes, memory.capacity_bytes);
  const shown = await text(page, '#shortage');
  for (const value of [failure.requested_bytes, failure.missing_bytes, failure.largest_free_bytes, failure.free_bytes, failure.device_free_bytes, failure.reserved_bytes]) assert.ok(shown.includes(bytes(value)), `${bytes(value)} in ${shown}`);
  const sum = totals(segmentsAt(blocks, blocks.moments.count - 1));
  assert.deepEqual([sum.free, sum.freeBlocks, sum.largest, sum.used, sum.reserved], [failure.free_bytes, failure.free_blocks, failure.largest_free_bytes, failure.allocated_bytes, failure.reserved_bytes]);
  assert.deepEqual(faults, []);
  await close();
});

test('the power curve has the energy of the step, and the limit is drawn', async () => {
  const { page, faults, close } = await open();
  await view(page, 'power');
  const { page: { power }, step } = await answer(page);
  const lines = await page.evaluate(() => globalThis.ridgeline.chartAt('power').getOption().series[0].markLine.data.map((d) => d.yAxis));
  const { spans } = (await answer(page)).page;
  const curve = powerCurve(spans, power, step.time_s * 1e6);
  const area = curve.slice(1).reduce((sum, [at], i) => sum + (at - curve[i][0]) * 1e-6 * curve[i][1], 0);
  assert.ok(Math.abs(area - step.energy_j) < 2e-3 * step.energy_j, `${area} J of ${step.energy_j}`);
  assert.deepEqual(lines, [power.limit_w, power.average_w]);
  // It is drawn: below the curve the colour of its area, above it the card.
  const painted = await page.evaluate(([share, height]) => {
    const chart = globalThis.ridgeline.chartAt('power');
    const canvas = chart.getRenderedCanvas({ pixelRatio: 1, backgroundColor: '#fff' });
    const { data, width } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const at = (w) => { const [x, y] = chart.convertToPixel({ gridIndex: 0 }, [share, w]); const i = 4 * (Math.round(y) * width + Math.round(x)); return [...data.slice(i, i + 3)]; };
    return [at(height / 2), at(height * 1.5)];
  }, [step.time_s * 5e5, Math.min(...curve.map(([, w]) => w))]);
  assert.notDeepEqual(painted[0], painted[1]);
  const shares = Object.values(power.energy_by_class_j).reduce((sum, j) => sum + j, 0);
  assert.ok(Math.abs(shares - step.energy_j) < 1e-4 * step.energy_j);
  await page.click('#energy-numbers summary');
  await page.waitForSelector('#energy-numbers tbody tr');
  assert.ok((await text(page, '#energy-numbers')).includes(percent(power.energy_by_class_j.idle / power.energy_j)));
  // The timeline below shows the same stretch.
  await page.evaluate(() => globalThis.ridgeline.chartAt('power').dispatchAction({ type: 'dataZoom', startValue: 20000, endValue: 40000 }));
  const [from, to] = await page.evaluate(() => { const { startValue, endValue } = globalThis.ridgeline.chartAt('timeline').getOption().dataZoom[0]; return [startValue, endValue]; });
  assert.ok(Math.abs(from - 20000) < 200 && Math.abs(to - 40000) < 200, `${from} to ${to}`);
  await slide(page, 'power.limit', -1);
  const held = await answer(page);
  assert.ok(held.page.power.limit_w === 350 && held.page.power.average_w <= 350.001 && Math.min(...held.page.power.clock_mhz) < 1900);
  assert.deepEqual(faults, []);
  await close();
});

test('caches show where each operand comes from, and a slider in the view moves them', async () => {
  const { page, faults, close } = await open();
  await view(page, 'caches');
  const { page: shown, kernel } = await answer(page);
  const longest = shown.groups.reduce((most, g, i) => (g.time_s > shown.groups[most].time_s ? i : most), 0);
  assert.equal(kernel.group, longest);
  const drawn = await page.evaluate('ridgeline.chartAt("cache-hits").getOption().series.map((s) => s.data.map((d) => d.bytes))');
  const operands = [...kernel.caches.operands].reverse();
  assert.deepEqual(drawn[2], operands.map((o) => o.dram_bytes));
  operands.forEach((o, i) => assert.ok(Math.abs(drawn[0][i] + drawn[1][i] + drawn[2][i] - Math.max(o.loaded_bytes, o.loaded_bytes - o.l2_bytes + o.dram_bytes)) < 1));
  await page.click('#cache-hits-numbers summary');
  await page.waitForSelector('#cache-hits-numbers tbody tr');
  const row = await text(page, '#cache-hits-numbers tbody tr');
  for (const value of [bytes(kernel.caches.operands[0].loaded_bytes), percent(kernel.caches.operands[0].l2_hit_share)]) assert.ok(row.includes(value), row);
  // Another kernel, held by the link.
  const other = shown.groups.findIndex((g) => g.class === 'normalization');
  await drawnAfter(page, () => page.select('#cache-kernel', String(other)));
  assert.equal((await answer(page)).kernel.name, shown.groups[other].name);
  assert.equal(await page.evaluate('ridgeline.asked.current().look.kernel'), other);
  const before = (await answer(page)).kernel.caches;
  await drawnAfter(page, () => page.$eval('[data-also="l2.capacity"]', (range) => { range.value = 2; range.dispatchEvent(new Event('input')); }));
  const after = (await answer(page)).kernel.caches;
  assert.equal(after.l2_capacity_bytes, 4 * before.l2_capacity_bytes);
  assert.ok(after.held_before_bytes > 1.5 * before.held_before_bytes);
  assert.equal(await page.$eval('[data-key="l2.capacity"]', (range) => Number(range.value)), 2, 'the slider on the left is the same');
  assert.ok((await text(page, '#evicted-card')).includes(bytes(after.evicted_bytes)));
  assert.deepEqual(faults, []);
  await close();
});

test('blocks are placed once each, no more on an SM than it holds', () => {
  const all = placed(300, 132, 2);
  assert.equal(all.length, 300);
  assert.equal(new Set(all.map((b) => `${b.sm} ${b.slot} ${b.wave}`)).size, 300);
  assert.ok(all.every((b) => b.sm < 132 && b.slot < 2));
  assert.deepEqual(all.at(-1), { sm: 35, slot: 0, wave: 1 });
});

test('the scenario goes to YAML and back, and its command asks the same', async () => {
  const { page, faults, close } = await open();
  await page.click('[data-view=scenario]');
  await page.waitForSelector('#yaml');
  const first = await written(page);
  assert.ok(first.includes('model: bert-large\n') && first.includes('  micro_batch: 4\n'), first);
  await endOf(page, 'micro_batch: 4');
  await press(page, 'Backspace');
  await page.keyboard.type('8');
  await press(page, 'Control+End');
  await page.keyboard.type('software: pytorch-2.0\n');
  assert.equal(await written(page), `${first.replace('micro_batch: 4', 'micro_batch: 8')}software: pytorch-2.0\n`);
  await page.click('#apply');
  await page.waitForFunction('ridgeline.asked.current().scenario.training.micro_batch === 8');
  const state = await page.evaluate('ridgeline.asked.current()');
  assert.equal(state.scenario.software, 'pytorch-2.0');
  await page.click('#terminal summary');
  await page.waitForFunction((line) => document.getElementById('command').textContent === line, {}, command(state));
  await page.waitForFunction('ridgeline.lab.answer.question.scenario.training.micro_batch === 8');
  sameAs(await answer(page), printed(state));
  await page.click('#yaml');
  await press(page, 'Control+a');
  await page.keyboard.type('hardware: nvidia-t4\nmodle: gpt2\n');
  await page.click('#apply');
  await page.waitForFunction('document.getElementById("yaml-told").className === "bad"');
  const told = await text(page, '#yaml-told');
  assert.ok(told.includes('scenario:2:1') && told.includes('model'), told);
  assert.deepEqual(faults.filter((fault) => !fault.includes('400 (Bad Request)')), []);
  await close();
});

test('a mistake that is typed is marked at its line, in both themes, on a phone', async () => {
  const { page, faults, close } = await open('', { width: 390, height: 844 });
  await opened('scenario')(page);
  await endOf(page, 'model: bert-large');
  await page.keyboard.type(' # of 2018');
  await press(page, 'Enter');
  await page.keyboard.type('  modle: gpt2');
  await press(page, 'Control+Enter');
  await page.waitForFunction('document.getElementById("yaml-told").className === "bad"');
  const [, row, column] = /scenario:(\d+):(\d+)/.exec(await text(page, '#yaml-told'));
  const marked = () => page.evaluate(() => ({ lines: [...document.querySelectorAll('#yaml .cm-line')].flatMap((line, i) => (line.classList.contains('wrong-line') ? [i + 1] : [])), parts: [...document.querySelectorAll('#yaml .wrong')].map((part) => part.textContent).join(''), invalid: document.getElementById('yaml').getAttribute('aria-invalid') }));
  const wrongLine = (await written(page)).split('\n')[row - 1];
  assert.match(wrongLine, /modle/);
  assert.deepEqual(await marked(), { lines: [Number(row)], parts: wrongLine.slice(column - 1), invalid: 'true' });
  assert.equal(await page.evaluate('document.getElementById(document.activeElement.getAttribute("aria-describedby")).textContent'), await text(page, '#yaml-told'));
  for (const _ of ['light', 'dark']) {
    assert.deepEqual([await axe(page), await page.evaluate(audit)], [[], []], await page.evaluate('document.documentElement.dataset.theme'));
    await drawnAfter(page, () => page.$eval('#do-theme', (button) => button.click()));
  }
  assert.match(await written(page), /modle/, 'another theme leaves the draft');
  // Lines above it move the mark; what is put right has none.
  await page.focus('#yaml');
  await press(page, 'Control+Home', 'Enter');
  assert.deepEqual((await marked()).lines, [Number(row) + 1]);
  await endOf(page, 'modle');
  await press(page, 'Shift+Home', 'Shift+Home', 'Backspace', 'Backspace', 'Control+Enter');
  await page.waitForFunction('document.getElementById("yaml-told").className === "good"');
  assert.deepEqual(await marked(), { lines: [], parts: '', invalid: null });
  assert.deepEqual(faults.filter((fault) => !fault.includes('400 (Bad Request)')), []);
  await close();
});

test('controls change the text around the cursor, the editor takes back what was typed and the lab what was asked, Tab leaves', async () => {
  const { page, faults, close } = await open();
  await opened('scenario')(page);
  const first = await written(page);
  const batch = () => page.evaluate('ridgeline.asked.current().scenario.training.micro_batch');
  await endOf(page, 'sequence_length: 512');
  const at = () => page.evaluate(() => { const { anchorNode, anchorOffset } = getSelection(); return [anchorNode.parentElement.closest('.cm-line').textContent, anchorOffset + (anchorNode.parentElement.matches('.cm-line') ? 0 : 1000)]; });
  const where = await at();
  assert.match(where[0], /sequence_length/);
  const input = await page.$$eval('.field label', (all) => all.find((label) => label.textContent === 'Batch')?.htmlFor);
  await drawnAfter(page, () => page.$eval(`#${input}`, (field) => { field.value = 16; field.dispatchEvent(new Event('input')); }));
  assert.equal(await written(page), first.replace('micro_batch: 4', 'micro_batch: 16'));
  assert.deepEqual(await at(), where, 'the cursor stays');
  await slide(page, 'sm.count', -1); // changes no word of the scenario
  await page.focus('#yaml');
  await page.keyboard.type('0');
  await page.focus('[data-key="sm.count"]');
  await slide(page, 'sm.count', -0.5);
  assert.match(await written(page), /sequence_length: 5120\n/, 'a draft stays');
  await page.focus('#yaml');
  // What was typed first, then what was asked.
  await press(page, 'Control+z');
  assert.equal(await written(page), first.replace('micro_batch: 4', 'micro_batch: 16'));
  assert.equal((await page.evaluate('ridgeline.asked.current().set'))['sm.count'] !== undefined, true, 'the question is as it was');
  while ((await page.evaluate('ridgeline.asked.current().set'))['sm.count']) await drawnAfter(page, () => press(page, 'Control+z'));
  assert.equal(await batch(), 16);
  await drawnAfter(page, () => press(page, 'Control+z'));
  assert.deepEqual([await batch(), await written(page)], [4, first]);
  await drawnAfter(page, () => press(page, 'Control+Shift+Z'));
  assert.deepEqual([await batch(), await written(page)], [16, first.replace('micro_batch: 4', 'micro_batch: 16')]);
  await drawnAfter(page, () => page.click('#do-undo'));
  // A draft that the lab wrote over comes back too.
  await endOf(page, 'sequence_length: 512');
  await page.keyboard.type('0');
  await drawnAfter(page, () => page.click('#do-redo'));
  assert.equal(await written(page), first.replace('micro_batch: 4', 'micro_batch: 16'));
  await page.focus('#yaml');
  await press(page, 'Control+z');
  assert.equal(await written(page), first.replace('sequence_length: 512', 'sequence_length: 5120'));
  await press(page, 'Tab');
  assert.equal(await page.evaluate('document.activeElement.id'), 'apply');
  await press(page, 'Shift+Tab');
  assert.equal(await page.evaluate('document.activeElement.id'), 'yaml');
  await press(page, 'Shift+Tab');
  assert.equal(await page.evaluate('document.activeElement.closest("#yaml")'), null);
  assert.equal(await written(page), first.replace('sequence_length: 512', 'sequence_length: 5120'), 'Tab writes nothing');
  assert.deepEqual(faults, []);
  await close();
});

test('one text becomes another by the least stretch', () => {
  for (const [before, after, change] of [['a: 4\nb: 5\n', 'a: 16\nb: 5\n', [3, 4, '16']], ['aa', 'aaa', [2, 2, 'a']], ['', 'x', [0, 0, 'x']], ['abc', '', [0, 3, '']], ['same', 'same', [4, 4, '']]]) {
    const { from, to, insert } = difference(before, after);
    assert.deepEqual([from, to, insert], change);
    assert.equal(before.slice(0, from) + insert + before.slice(to), after);
  }
});

test('what the page writes of a state reads back', () => {
  const state = { scenario: { title: 'a: "b" #c', model: { family: 'gpt2', layers: 2 }, training: { micro_batch: 4, optimizer: { name: 'adamw', implementation: 'fused' }, tf32: true }, list: [1, 'x y'] }, set: { 'dram.bandwidth': '4.8 TB/s' }, engine: 'roofline', view: 'overview', pinned: null };
  assert.deepEqual(fromFragment(fragment(state)), state);
  for (const broken of ['', '#state=', '#state={', '#state=[]', '#state={"scenario":3}']) assert.equal(fromFragment(broken), null, broken);
  assert.equal(flow('true'), '"true"');
  assert.equal(flow('1e3'), '"1e3"');
  assert.ok(yaml(state.scenario).startsWith('title: "a: \\"b\\" #c"\nmodel:\n  family: gpt2\n'));
  assert.ok(command(state).includes("--set 'hardware.dram.bandwidth=4.8 TB/s' --engine roofline"));
  assert.deepEqual(valuesOf('1, 2.5, fp32,, '), [1, 2.5, 'fp32']);
  assert.deepEqual(sweepOf(state, [{ key: 'hardware.dram.bandwidth', values: [1] }]).axes, { 'hardware.dram.bandwidth': [1] });
  assert.deepEqual(questionsOf('ridgeline predict scenarios/nanogpt/flash-attention.yaml --batch 2'), [{ name: 'nanogpt/flash-attention', changes: [['training.micro_batch', '2']] }]);
  assert.deepEqual(questionsOf('ridgeline hardware nvidia-t4'), []);
  assert.deepEqual([sheetOf('/opt/ridgeline hardware nvidia-t4'), sheetOf('ridgeline models gpt2'), sheetOf('ridgeline predict x')], ['hardware/nvidia-t4', 'models/gpt2', null]);
  const { cases, query } = casesOf(`echo '{"op":"mm"}' | ridgeline kernels --hardware nvidia-t4 --set dram.bandwidth="6 TB/s"`);
  assert.deepEqual([cases, String(query)], ['{"op":"mm"}', 'hardware=nvidia-t4&set=dram.bandwidth%3D6+TB%2Fs']);
  assert.equal(casesOf('ridgeline kernels x'), null);
  assert.equal(caseInWords('{"op":"mm","dtype":"bf16","params":{"m":16}}', query), 'Run the kernel mm in bf16, m 16, on nvidia-t4, DRAM bandwidth 6 TB/s.');
});

test('a sweep shows its progress and answer, and one that is stopped says so', async () => {
  const { page, faults, close } = await open();
  await page.click('[data-view=sweep]');
  await page.waitForSelector('#run-sweep');
  await page.click('#run-sweep');
  await page.waitForFunction('/12 points in/.test(document.getElementById("sweep-told").textContent)', { timeout: 90000 });
  assert.ok((await page.$$('#best tbody tr')).length > 0);
  await page.$eval('#values-1', (input) => { input.value = Array.from({ length: 400 }, (_, i) => i + 1).join(','); });
  await page.click('#run-sweep');
  await page.waitForFunction('/ of 800 points/.test(document.getElementById("sweep-told").textContent)', { timeout: 90000 });
  await page.click('#stop-sweep');
  await page.waitForFunction('/given up/.test(document.getElementById("sweep-told").textContent)', { timeout: 90000 });
  assert.deepEqual(faults, []);
  await close();
});

test('an exercise asks first, hints after a guess, and remembers what was done', async () => {
  const { page, faults, close } = await open();
  const solved = JSON.parse(execFileSync(process.env.RIDGELINE, ['exercise', '4', '--solution', '--format', 'json'], { encoding: 'utf8' }));
  await page.click('[data-view=exercises]');
  await page.waitForSelector('[data-exercise="4"]');
  await page.click('[data-exercise="4"]');
  await page.waitForSelector('#guess');
  assert.equal(await page.$eval('#hint', (b) => b.disabled), true);
  assert.equal(await page.$eval('#reveal', (b) => b.disabled), true);
  await page.type('#guess', String(solved.answer * 3));
  await page.click('#check');
  await page.waitForFunction('/Not quite/.test(document.getElementById("exercise-told").textContent)');
  assert.ok((await text(page, '#why-not')).length > 20, 'a hint that comes from the answer');
  assert.equal(await page.$('figure.bars'), null, 'no picture before the answer is right');
  await page.click('#hint');
  assert.equal(await text(page, '#hints .step p'), questionInWords(questionsOf(solved.explore[0])[0]));
  await page.$eval('#guess', (input) => { input.value = ''; });
  await page.type('#guess', String(solved.answer));
  await page.click('#check');
  await page.waitForFunction('/Right/.test(document.getElementById("exercise-told").textContent)');
  assert.ok((await text(page, '#exercise-told')).includes(solved.explanation.trim().split('\n')[0]));
  assert.deepEqual(await page.$$eval('figure.bars tbody th', (all) => all.map((th) => th.textContent)), solved.picture.bars.map((bar) => bar.label));
  await page.reload();
  await page.waitForFunction('globalThis.ridgeline?.lab.drawn > 0');
  await page.click('[data-view=exercises]');
  await page.waitForFunction('/^1 of [0-9]+ right/.test(document.getElementById("exercise-progress").textContent)');
  assert.deepEqual(faults, []);
  await close();
});

test('every command of an exercise is a step of the page; sweeps and collectives run there', async () => {
  const { page, faults, close } = await open();
  const all = await page.evaluate(async () => Promise.all((await (await fetch('/api/exercises')).json()).map(async (e) => (await fetch(`/api/exercises/${e.number}`)).json())));
  for (const { number, explore } of all) for (const one of explore) assert.ok(casesOf(one) || collectivesOf(one) || shippedSweepOf(one) || sheetOf(one) || questionsOf(one).length, `${number}: ${one}`);
  await page.evaluate((titles) => localStorage.setItem('ridgeline-exercises-by-title', JSON.stringify(Object.fromEntries(titles.map((title) => [title, { guess: '2' }])))), all.filter((e) => [12, 37].includes(e.number)).map((e) => e.title));
  await page.click('[data-view=exercises]');
  for (const [number, hints, button, shown] of [[12, 3, '.run-shipped-sweep', 'document.querySelectorAll("#sweep-numbers tbody tr").length === 12'], [37, 3, '.run-collective', '/GB\\/s of bus bandwidth/.test(document.getElementById("hints").textContent)']]) {
    await page.waitForSelector(`[data-exercise="${number}"]`);
    await page.$eval(`[data-exercise="${number}"]`, (b) => b.click());
    await page.waitForFunction((n) => document.querySelector('#exercise h2')?.textContent.startsWith(`${n}.`), {}, number);
    for (let i = 0; i < hints; i += 1) await page.$eval('#hint', (b) => b.click());
    await page.$eval(button, (b) => b.click());
    await page.waitForFunction(shown, { timeout: 60000 });
  }
  assert.deepEqual([faults, await axe(page)], [[], []]);
  await close();
});

test('every exercise is solved in the page, and each expected mistake gets its hint', { timeout: 480000 }, async () => {
  const { page, faults, close } = await open();
  await page.click('[data-view=exercises]');
  await page.waitForSelector('[data-exercise="32"]');
  const numbers = await page.$$eval('[data-exercise]', (all) => all.map((b) => Number(b.dataset.exercise)));
  assert.ok(numbers.length >= 32);
  const say = async (value, done) => {
    await page.$eval('#guess', (input, v) => { input.value = v; document.getElementById('exercise-told').textContent = ''; }, String(value));
    await page.$eval('#check', (b) => b.click());
    await page.waitForSelector(done, { timeout: 60000 });
  };
  for (const number of numbers) {
    const solved = await page.evaluate(async (n) => (await fetch(`/api/exercises/${n}?solution=1`)).json(), number);
    await page.$eval(`[data-exercise="${number}"]`, (b) => b.click());
    await page.waitForFunction((title) => document.querySelector('#exercise h2')?.textContent.endsWith(title), {}, solved.title);
    const [mistake] = solved.mistakes;
    await say(mistake.answer, '#why-not');
    assert.equal(await text(page, '#why-not'), mistake.hint, solved.title);
    await say(solved.answer, 'figure.bars');
    for (let i = solved.explore.length; i > 0; i -= 1) await page.$eval('#hint', (b) => b.click());
    assert.ok(await page.$('#hints .step'), `${solved.title}: nothing to explore in the page`);
    assert.doesNotMatch(await page.$eval('#exercise', (section) => section.innerText), kTerminal, solved.title);
  }
  assert.match(await text(page, '#exercise-progress'), new RegExp(`^${numbers.length} of ${numbers.length} right`));
  assert.deepEqual(faults, []);
  await close();
});

test("the teacher's page has a solution for each exercise and says how long they take", { timeout: 240000 }, async () => {
  const { page, faults, close } = await open();
  await page.click('[data-view=teacher]');
  await page.waitForSelector('#all-solutions');
  await page.click('#all-solutions');
  await page.waitForFunction('/ solutions, about .* for a learner/.test(document.getElementById("teacher-told").textContent)', { timeout: 200000 });
  const rows = await page.$$('#teacher-exercises tbody tr');
  const sheets = await page.$$eval('#sheets .sheet', (all) => all.map((sheet) => sheet.textContent));
  assert.equal(sheets.length, rows.length);
  for (const sheet of sheets) assert.ok(/Simulated: [−\d]/.test(sheet) && /About \d+ minutes/.test(sheet) && /To explore(Predict|Compare|Run|Look)/.test(sheet) && !sheet.includes('ridgeline '), sheet.slice(0, 80));
  assert.deepEqual(faults, []);
  await close();
});

test('calibration curves show every measured point beside the engines', async () => {
  const { page, faults, close } = await open();
  await page.click('[data-view=calibration]');
  await page.waitForSelector('#calibration canvas', { timeout: 60000 });
  const all = await page.evaluate(async () => (await fetch('/api/microkernels')).json());
  for (const name of ['dram_read', 'occupancy_bandwidth', 'stream_period']) {
    await page.select('#calibration-curve', name);
    const curve = all[0].curves.find((c) => c.name === name);
    const series = await page.evaluate('ridgeline.chartAt("calibration").getOption().series.map((s) => [s.type, s.name, s.data.map((d) => d.value[1])])');
    const drawn = series.filter(([type]) => type === 'scatter').flatMap(([, , values]) => values);
    assert.deepEqual(drawn.sort((a, b) => a - b), curve.points.map((p) => p.measured).sort((a, b) => a - b), name);
    assert.ok(series.some(([, engine]) => engine === 'analytic'), name);
  }
  await page.click('#calibration-numbers summary');
  await page.waitForSelector('#calibration-numbers tbody tr');
  await page.select('#calibration-gpu', '1');
  assert.ok((await text(page, '#content')).includes(all[1].device));
  assert.deepEqual(faults, []);
  await close();
});

test('a sweep is a heat map and parallel coordinates that are brushed', async () => {
  const { page, faults, close } = await open();
  await page.click('[data-view=sweep]');
  await page.waitForSelector('#run-sweep');
  await page.click('#run-sweep');
  await page.waitForSelector('#parallel-coordinates canvas', { timeout: 90000 });
  const cells = await page.evaluate('ridgeline.chartAt("heat-map").getOption().series[0].data.map((d) => [...d.value, d.p.at["training.micro_batch"], d.p.step_time_s])');
  assert.equal(cells.length, 12);
  for (const [, , value, , time] of cells) assert.equal(value, time);
  await page.focus('#heat select[aria-label="colour shows"]');
  await page.select('#heat select[aria-label="colour shows"]', 'tokens_per_s');
  assert.equal(await page.evaluate('document.activeElement.getAttribute("aria-label")'), 'colour shows');
  await page.click('#heat-numbers summary');
  await page.waitForFunction('document.querySelectorAll("#heat-numbers tbody tr").length === 2');
  // Brushed by the fields ...
  await page.click('#brush summary');
  await page.select('#brush-fields select:nth-of-type(1)', '4');
  await page.waitForFunction('/^2 of 12 points/.test(document.getElementById("brush-told").textContent)');
  await page.waitForFunction('document.querySelectorAll("#brushed tbody tr").length === 2');
  await page.click('#brush-clear');
  await page.waitForFunction('/^All 12 points/.test(document.getElementById("brush-told").textContent)');
  // ... and with the mouse, along the axis of the step time.
  const [x, top, bottom] = await page.evaluate(() => {
    const place = document.getElementById('parallel-coordinates');
    place.scrollIntoView({ block: 'center' });
    const drawn = globalThis.ridgeline.chartAt('parallel-coordinates');
    const at = drawn.getModel().getComponent('parallelAxis', 2).axis;
    const model = drawn.getModel().getComponent('parallel').coordinateSystem;
    const [from] = model.dataToPoint(at.scale.getExtent()[0], at.dim);
    const [low, high] = at.scale.getExtent().map((v) => model.dataToPoint(v, at.dim)[1]);
    const box = place.getBoundingClientRect();
    return [box.left + from, box.top + Math.min(low, high), box.top + Math.max(low, high)];
  });
  await page.mouse.move(x, bottom - 1);
  await page.mouse.down();
  await page.mouse.move(x, (top + bottom) / 2, { steps: 8 });
  await page.mouse.up();
  await page.waitForFunction('/^[0-9]+ of 12 points/.test(document.getElementById("brush-told").textContent)');
  const left = Number(/^\d+/.exec(await text(page, '#brush-told'))[0]);
  assert.ok(left > 0 && left < 12);
  assert.equal((await page.$$('#brushed tbody tr')).length, left);
  // The pictures of a second sweep stand where those of the first stood.
  await page.$eval('#values-1', (input) => { input.value = '1,2'; });
  await page.click('#run-sweep');
  await page.waitForFunction('/^4 points in/.test(document.getElementById("sweep-told").textContent)', { timeout: 90000 });
  for (const id of ['heat-map', 'sweep', 'parallel-coordinates']) assert.ok(await page.evaluate((name) => globalThis.ridgeline.chartAt(name).getWidth() > 200 && document.querySelectorAll(`#${name} canvas`).length > 0, id), id);
  assert.match(await text(page, '#brush-told'), /^All 4 points/);
  assert.deepEqual(faults, []);
  await close();
});

test('cells, limits and errors are counted right', () => {
  const points = [1, 2].flatMap((b) => ['x', 'y'].map((c) => ({ at: { b, c, d: 1 }, v: b * (c === 'x' ? 1 : 10) })));
  assert.deepEqual(cellsOf(points, { name: 'b', values: [1, 2] }, { name: 'c', values: ['x', 'y'] }, { d: '1' }).map(({ p, i, j }) => [p.v, i, j]), [[1, 0, 0], [10, 0, 1], [2, 1, 0], [20, 1, 1]]);
  assert.equal(cellsOf(points, { name: 'b', values: [1, 2] }, { name: 'c', values: ['x', 'y'] }, { d: '2' }).length, 0);
  assert.deepEqual(withinLimits(points, { ranges: { v: [2, 10] }, values: {} }).map((p) => p.v), [10, 2]);
  assert.deepEqual(withinLimits(points, { ranges: {}, values: { c: 'y' } }).map((p) => p.v), [10, 20]);
  assert.deepEqual(errorsOf([{ measured: 10, predicted: [11] }, { measured: 10, predicted: [null] }, { measured: 10, predicted: [12] }, { measured: 10, predicted: [9] }], 0).map((e) => Math.round(100 * e)), [10, 20]);
  assert.equal(errorsOf([{ measured: 1, predicted: [null] }], 0), null);
  const curve = { along: 'warps', points: [1, 2].flatMap((x) => [1, 4].map((loads) => ({ x, at: { warps: x, loads, bytes: 7 } }))) };
  assert.deepEqual(groupKeys(curve), ['loads']);
  assert.equal(groupOf(curve.points[1], ['loads']), 'loads 4');
  assert.deepEqual(groupKeys({ along: 'warps', points: curve.points.slice(1, 3) }), []);
  const [wider, more] = questionsOf('ridgeline compare scenarios/bert-large-fp32.yaml --with "hardware.dram.bandwidth=9.6 TB/s" --with model.vocabulary=50258');
  assert.deepEqual(wider.changes, [['hardware.dram.bandwidth', '9.6 TB/s']]);
  assert.deepEqual([wider, more].map(questionInWords), ['Compare bert-large-fp32 with the same at DRAM bandwidth 9.6 TB/s.', 'Compare bert-large-fp32 with the same at vocabulary 50258.']);
  assert.equal(questionInWords(questionsOf('ridgeline predict scenarios/bert-large-fp32.yaml --hardware nvidia-t4 --batch 2 --memory-report')[0]), 'Predict bert-large-fp32, on nvidia-t4, batch 2.');
  assert.ok(command({ scenario: { model: 'gpt2' }, set: { 'model.vocabulary': '50304', 'sm.count': '66' }, engine: 'analytic' }).endsWith('--set model.vocabulary=50304 --set hardware.sm.count=66'));
  assert.deepEqual(questionsOf('/opt/ridgeline compare /usr/share/scenarios/a/b.yaml --batch 2 --with "x.y=1 z=2"'), [{ name: 'a/b', changes: [['training.micro_batch', '2'], ['x.y', '1'], ['z', '2']], more: [['x.y', '1'], ['z', '2']], pinned: { name: 'a/b', changes: [['training.micro_batch', '2']] } }]);
});

/** Runs axe over the page as it stands, without what lies below `known`: parts that were seen as they are already. */
const kAxe = readFileSync(new URL('./node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
const kOfColours = ['color-contrast', 'link-in-text-block'];
async function axe(page, known = [], rules = undefined) {
  await page.evaluate(`globalThis.axe || (() => { ${kAxe} })()`);
  // Of the rows of a table the first eight: what is seen in them is seen in all.
  return page.evaluate(async ([exclude, only]) => {
    const further = [...document.querySelectorAll('tbody tr:nth-child(n + 9)')];
    for (const row of further) row.hidden = true;
    const found = (await globalThis.axe.run({ exclude }, { resultTypes: ['violations'], ...(only && { runOnly: { type: 'rule', values: only } }) })).violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(' ')).join(', ')}`);
    for (const row of further) row.hidden = false;
    return found;
  }, [known, rules]);
}

/** States of the page that axe sees, each reached from the one before it. */
const unfold = (page, selector) => page.$$eval(selector, (all) => all.forEach((details) => { details.open = true; }));
const kStates = [
  // The question on the left is seen with the first of them; it stays as it is.
  // Of two hundred kernels those of one class: what is seen in one row is seen in all.
  ['kernels', async (page) => {
    await opened('kernels')(page);
    await page.type('#content input[type="search"]', 'norm');
  }],
  ['gemm', async (page) => { await opened('gemm')(page); await page.waitForSelector('#staircase canvas'); }],
  ...['overview', 'timeline', 'memory', 'advice', 'compare', 'scenario', 'exercises', 'teacher', 'calibration', 'sweep'].map((id) => [id, opened(id)]),
  ['a sweep', async (page) => {
    await page.waitForSelector('#run-sweep');
    await page.click('#run-sweep');
    await page.waitForSelector('#parallel-coordinates canvas', { timeout: 90000 });
    await unfold(page, '#brush, #heat-numbers');
  }],
  ['curves', async (page) => {
    await page.click('[data-view=calibration]');
    await page.waitForSelector('#calibration canvas', { timeout: 60000 });
    await unfold(page, '#calibration-numbers');
  }],
  ['a wrong answer', async (page) => {
    await page.click('[data-view=exercises]');
    await page.waitForSelector('[data-exercise="4"]');
    await unfold(page, '#all-exercises');
    await page.click('[data-exercise="4"]');
    await page.waitForFunction('document.querySelector("#exercise h2")?.textContent.startsWith("4. ")');
    await page.type('#guess', '1');
    await page.click('#check');
    await page.waitForSelector('#why-not');
    await page.click('#hint');
  }],
  ['a solution', async (page) => {
    await page.click('#reveal');
    await page.waitForSelector('figure.bars');
  }],
  ['a sheet', async (page) => {
    await page.click('[data-view=teacher]');
    await page.waitForSelector('#teacher-exercises button');
    await page.click('#teacher-exercises tbody button');
    await page.waitForSelector('.sheet');
  }],
  ['caches with numbers', async (page) => { await opened('caches')(page); await unfold(page, '#cache-hits-numbers, #cache-levels-numbers'); }],
  ['power with numbers', async (page) => { await opened('power')(page); await unfold(page, '#energy-numbers'); }],
  ['a tour', async (page) => { await page.$eval('#do-tour', (button) => button.click()); await page.waitForSelector('#tour-guesses button'); }],
  ['a guess', async (page) => { await page.$eval('#tour-guesses button', (button) => button.click()); await page.waitForFunction('/\\d/.test(document.getElementById("tour-says").textContent)'); }],
  ['saving', async (page) => { await page.keyboard.press('Escape'); await page.waitForFunction('!document.getElementById("tour")'); await page.$eval('#do-save', (button) => button.click()); }],
  ['out of memory', async (page) => {
    await page.$eval('#export', (dialog) => dialog.close());
    await opened('memory')(page);
    await drawnAfter(page, () => page.evaluate('ridgeline.asked.update((s) => { s.scenario.training.micro_batch = 512; })'));
    await page.waitForSelector('#shortage');
  }],
  ['wrong input', async (page) => {
    await opened('overview')(page);
    if (await page.$eval('#question', (bar) => bar.checkVisibility())) await page.click('#question');
    await typed(page, 'Batch', '0');
    await unfold(page, 'details.more');
  }, []],
];

/** Walks one page through all states: with every rule and the check below, and in the other theme with what depends on colours. */
async function seenByAxe(size) {
  const { page, faults, close } = await open('', size);
  const scheme = () => page.evaluate('document.documentElement.dataset.theme');
  for (const [name, reach, known = name === kStates[0][0] ? [] : ['#controls']] of kStates) {
    await reach(page);
    const before = await scheme();
    assert.deepEqual(await axe(page, known), [], `${name}, ${before}, ${size.width} wide`);
    assert.deepEqual(await page.evaluate(audit), [], `${name}, ${before}, ${size.width} wide`);
    await drawnAfter(page, () => page.$eval('#do-theme', (button) => button.click()));
    assert.notEqual(await scheme(), before);
    assert.deepEqual(await axe(page, known, kOfColours), [], `${name}, ${await scheme()}, ${size.width} wide`);
    assert.deepEqual(await page.evaluate(audit), [], `${name}, ${await scheme()}, ${size.width} wide`);
  }
  assert.deepEqual(faults, []);
  await close();
}

alone('axe finds nothing in light and dark, wide and narrow', { timeout: 480000 }, async () => {
  await Promise.all([{ width: 1400, height: 1000 }, { width: 390, height: 844 }].map(seenByAxe));
});

test('a server with a token answers who has it', async () => {
  const [guarded, link] = await serve('--token', 'a1b2');
  try {
    const [base] = link.split('#');
    assert.equal(link, `${base}#token=a1b2`);
    assert.equal((await fetch(`${base}api/hosts`)).status, 403);
    assert.equal((await fetch(`${base}api/hosts`, { headers: { Authorization: 'Bearer a1b2' } })).status, 200);
    const context = await browser.createBrowserContext();
    const page = await context.newPage();
    await page.goto(base);
    await page.waitForFunction('/token/.test(document.getElementById("trouble").textContent)');
    await page.goto('about:blank');
    await page.goto(link);
    await page.waitForFunction('globalThis.ridgeline?.lab.drawn > 0');
    await page.click('[data-view=sweep]');
    await page.waitForSelector('#run-sweep');
    await page.click('#run-sweep');
    await page.waitForFunction('/12 points in/.test(document.getElementById("sweep-told").textContent)', { timeout: 90000 });
    await page.waitForFunction('!location.hash.includes("token")');
    await context.close();
  } finally {
    guarded.kill('SIGTERM');
  }
});

test('hints that are a GPU\'s numbers or a kernel case are shown in the page', async () => {
  const { page, faults, close } = await open();
  await page.evaluate(() => localStorage.setItem('ridgeline-exercises-by-title', '{"fp32, TF32 and bf16 on the roofline": {"guess": "2"}}'));
  await page.click('[data-view=exercises]');
  await page.waitForSelector('[data-exercise="11"]');
  await page.click('[data-exercise="11"]');
  await page.waitForSelector('#hint:enabled');
  await page.click('#hint');
  await page.click('#hint');
  await page.click('.show-sheet');
  await page.waitForFunction('document.querySelectorAll("#sheet-numbers tbody tr").length > 20');
  await page.waitForSelector('.run-case');
  await page.click('.run-case');
  await page.waitForFunction('/limited by compute/.test(document.getElementById("hints").textContent)');
  assert.deepEqual(faults, []);
  await close();
});

test('pictures and numbers can be saved', async () => {
  const { page, faults, close } = await open();
  await page.evaluate(() => {
    globalThis.saved = [];
    const made = URL.createObjectURL.bind(URL);
    URL.createObjectURL = (blob) => { globalThis.saved.push(blob.text()); return made(blob); };
    HTMLAnchorElement.prototype.click = function click() { globalThis.saved.push(`${this.download} ${this.href.slice(0, 22)}`); };
  });
  await page.click('#do-save');
  for (const title of ['roofline, SVG', 'roofline, PNG', 'kernels, CSV', 'answer, JSON', 'command, SH']) await page.$$eval('#export button', (all, name) => all.find((b) => b.textContent === name).click(), title);
  await page.waitForFunction('globalThis.saved.length === 9'); // kernels and answer are asked for whole
  const saved = await page.evaluate('Promise.all(globalThis.saved)');
  const asked = command(await page.evaluate('ridgeline.asked.current()'));
  assert.ok(saved[0].startsWith('<svg') && saved[0].includes('<path'), saved[0].slice(0, 80));
  assert.ok(saved[0].includes(asked) && saved[0].includes('engine analytic'), 'what the picture is of');
  assert.equal(saved.find((one) => one.startsWith('# ')), `# ${configuration(await page.evaluate('ridgeline.asked.current()'))}\n${asked}\n`);
  assert.equal(saved[2], 'roofline.png data:image/png;base64,');
  const { kernels } = await answer(page);
  const of = async (id, titles) => {
    await page.$eval('#export', (dialog) => dialog.close());
    await view(page, id);
    await page.click('#do-save');
    await page.evaluate('globalThis.saved.length = 0');
    for (const title of titles) await page.$$eval('#export button', (all, name) => all.find((b) => b.textContent === name).click(), title);
    return [await page.evaluate('Promise.all(globalThis.saved)'), (await answer(page)).page];
  };
  const [memory, { blocks }] = await of('memory', ['blocks, SVG', 'segments, PNG', 'blocks, CSV']);
  assert.ok(memory[0].startsWith('<svg') && memory[0].split('<rect').length > blocks.blocks.bytes.length, memory[0].slice(0, 80));
  assert.equal(memory[2], 'segments.png data:image/png;base64,');
  assert.equal(memory[3].trim().split('\r\n').length, blocks.blocks.bytes.length + 1);
  const [power, { spans }] = await of('power', ['power, SVG', 'power, CSV']);
  assert.equal(power[2].trim().split('\r\n').length, spans.start_us.length + 1);
  const [caches, { groups }] = await of('caches', ['cache levels, PNG', 'caches, CSV']);
  assert.equal(caches[1].trim().split('\r\n').length, groups.length + 1);
  assert.equal(saved.find((one) => one.startsWith('name,op,')).trim().split('\r\n').length, kernels.length + 1);
  assert.deepEqual(JSON.parse(saved.find((one) => one.startsWith('{'))).kernels, kernels);
  assert.deepEqual(faults, []);
  await close();
});

/** A check of our own, not axe: names of controls and pictures, one heading order, contrast of text, nothing too wide. */
const audit = () => {
  const wrong = [];
  const further = new Set(document.querySelectorAll('tbody tr:nth-child(n + 9) *'));
  const seen = (element) => !further.has(element) && element.checkVisibility() && element.getClientRects().length > 0;
  const nameOf = (element) => (element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? (element.matches('button, summary, a') ? element.textContent : '')).trim();
  for (const element of document.querySelectorAll('button, input, select, textarea, [contenteditable=true], summary, a, [role=img]')) if (seen(element) && !nameOf(element)) wrong.push(`no name: ${element.outerHTML.slice(0, 120)}`);
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
  for (const id of ids.filter((one, i) => ids.indexOf(one) !== i)) wrong.push(`twice: #${id}`);
  for (const element of document.querySelectorAll('[aria-describedby], [aria-labelledby]')) for (const id of (element.getAttribute('aria-describedby') ?? element.getAttribute('aria-labelledby')).split(' ')) if (!document.getElementById(id)) wrong.push(`describes by nothing: ${id}`);
  const light = (c) => { const [r, g, b] = c.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const parse = (colour) => colour.match(/[\d.]+/g).map(Number);
  const ground = (element) => { for (let at = element; at; at = at.parentElement) { const c = parse(getComputedStyle(at).backgroundColor); if (c.length < 4 || c[3] > 0.99) return c.slice(0, 3); } return [255, 255, 255]; };
  for (const element of document.querySelectorAll('h1, h2, p, span, b, small, label, output, td, th, th button, nav button, #actions button:enabled, .slider button, summary, .cm-line, .cm-gutterElement')) {
    if (!seen(element) || !element.textContent.trim()) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color).slice(0, 3)), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) wrong.push(`contrast ${contrast.toFixed(2)}: ${element.tagName} ${element.textContent.slice(0, 40)}`);
  }
  for (const place of [document.documentElement, document.getElementById('answer'), document.getElementById('controls')]) if (place.scrollWidth > place.clientWidth + 1) wrong.push(`wider than its place: ${place.id} ${place.scrollWidth}`);
  return [...new Set(wrong)];
};

test('what is wrong on a page is seen: names, contrast, width', async () => {
  const { page, faults, close } = await open();
  assert.deepEqual([await page.evaluate(audit), await axe(page)], [[], []]);
  await page.evaluate(() => {
    const faint = document.createElement('p');
    faint.style.cssText = 'color:#888;background:#999;width:3000px';
    faint.textContent = 'faint';
    document.getElementById('content').append(document.createElement('button'), faint);
  });
  const found = (await page.evaluate(audit)).join();
  for (const fault of ['no name', 'contrast', 'wider']) assert.ok(found.includes(fault), `${fault} is not seen: ${found}`);
  assert.match((await axe(page)).join(), /button-name.*color-contrast|color-contrast.*button-name/);
  assert.match((await axe(page, [], kOfColours)).join(), /color-contrast/);
  assert.deepEqual(faults, []);
  await close();
});

/** Types into a field of the question in the place of what is there. */
async function typed(page, label, written) {
  const id = await page.$$eval('.field label', (all, name) => all.find((one) => one.textContent === name).htmlFor, label);
  await page.focus(`#${id}`);
  await press(page, 'Control+a', 'Backspace');
  await page.keyboard.type(written);
  return `#${id}`;
}

test('a number that cannot be asked is marked at its field within 100 ms, and the old answer greys', async () => {
  const { page, faults, close } = await open();
  const before = await answer(page);
  const field = await typed(page, 'Batch', '4');
  const stale = () => page.$eval('#answer', (pane) => pane.classList.contains('stale'));
  for (const wrong of ['0', '-3', '1e9', '8.5', '', 'eight', '-', '4 8', '0x10', '1048577']) {
    const { ms, said, shown, invalid, red } = await page.$eval(field, (input, value) => {
      const begin = performance.now();
      input.value = value;
      input.dispatchEvent(new Event('input'));
      const sentence = document.getElementById(input.getAttribute('aria-describedby'));
      const shown = sentence?.checkVisibility() && sentence.getBoundingClientRect().height > 0;
      return { ms: performance.now() - begin, said: sentence?.textContent, shown, invalid: input.getAttribute('aria-invalid'), red: getComputedStyle(input).borderColor };
    }, wrong);
    assert.ok(shown && invalid === 'true' && /Enter .*\d/.test(said) && ms < 100, `'${wrong}': ${said} after ${ms} ms`);
    assert.equal(await stale(), true, wrong);
    assert.notEqual(red, await page.$eval('.field select', (other) => getComputedStyle(other).borderColor));
    assert.equal(await page.evaluate('ridgeline.asked.current().scenario.training.micro_batch'), 4, wrong);
    assert.ok((await text(page, '#trouble')).startsWith('Batch: '), wrong);
    await page.$eval(field, (input) => { input.value = '4'; input.dispatchEvent(new Event('input')); });
    assert.deepEqual([await stale(), await page.$eval(field, (input) => input.hasAttribute('aria-invalid')), await page.$eval('#trouble', (p) => p.hidden)], [false, false, true], 'put right');
  }
  assert.equal((await answer(page)).step.time_s, before.step.time_s);
  // Another field changes the answer; the mark stays until its own field is put right, or the question is another one.
  await typed(page, 'Batch', '0');
  await drawnAfter(page, () => page.evaluate("ridgeline.asked.update((s) => { s.scenario.training.precision = 'amp-bf16'; })"));
  assert.deepEqual([await page.$eval(field, (input) => input.value), await stale()], ['0', true]);
  await drawnAfter(page, () => page.evaluate('ridgeline.asked.update((s) => { s.scenario.training.micro_batch = 8; })'));
  await page.focus('#do-undo');
  assert.deepEqual([await page.$eval(field, (input) => input.value), await stale()], ['8', false]);
  // An accumulation need not be given; arrows count.
  const accumulation = await typed(page, 'Accumulation', '2');
  await press(page, 'ArrowUp', 'ArrowUp', 'ArrowDown');
  assert.equal(await page.evaluate('ridgeline.asked.current().scenario.training.gradient_accumulation'), 3);
  await typed(page, 'Accumulation', '');
  assert.deepEqual([await page.evaluate("'gradient_accumulation' in ridgeline.asked.current().scenario.training"), await page.$eval(accumulation, (input) => input.hasAttribute('aria-invalid'))], [false, false]);
  // A key that the server refuses is marked at its field too.
  await page.evaluate("ridgeline.asked.update((s) => { s.scenario.training.precision = 'fp8'; })");
  await page.waitForFunction('document.querySelector(".field select[aria-invalid]")');
  assert.equal(await stale(), true);
  await drawnAfter(page, () => page.click('#do-undo'));
  assert.deepEqual([await page.$('.field [aria-invalid]'), await stale()], [null, false]);
  // So is a part of a key that is refused as a whole, in a section that was folded away.
  await page.evaluate("ridgeline.asked.update((s) => { s.scenario.training.parallel = { pipeline: 3 }; })");
  await page.waitForFunction('document.querySelector("details.more .field input[aria-invalid]")?.checkVisibility()');
  assert.equal(await page.$eval('.field input[aria-invalid]', (input) => input.labels[0].textContent), 'Pipeline stages');
  await drawnAfter(page, () => page.click('#do-undo'));
  assert.deepEqual([await page.$('.field [aria-invalid]'), await stale()], [null, false]);
  assert.deepEqual(faults.filter((fault) => !fault.includes('400 (Bad Request)')), []);
  await close();
});

test('a mistake in a number is said in a sentence', () => {
  const all = { '': 'Enter a whole number from 1 to 10.', x: '“x” is not a number. Enter a whole number from 1 to 10.', 0: '0 is too small. Enter a whole number from 1 to 10.', 11: '11 is too large. Enter a whole number from 1 to 10.', 8.5: '8.5 is not a whole number. Enter 8 or 9.', 1.5e0: '1.5 is not a whole number. Enter 1 or 2.', '0.5': '0.5 is too small. Enter a whole number from 1 to 10.' };
  for (const [written, said] of Object.entries(all)) assert.equal(mistakeIn(written, 1, 10), said, written);
  for (const right of ['1', ' 10 ', '1e1', '+3', '4.0']) assert.equal(mistakeIn(right, 1, 10), null, right);
});

test('what does not fit shows predicted ways, and one that is taken fits', async () => {
  const { page, faults, close } = await open();
  assert.equal(await page.$('#ladder'), null);
  await drawnAfter(page, () => page.evaluate("ridgeline.asked.update((s) => { s.scenario = { hardware: 'nvidia-rtx-3090', model: 'gpt2-xl', training: { micro_batch: 4, sequence_length: 512, precision: 'fp32' } }; })"));
  await page.waitForSelector('#ladder .take', { timeout: 60000 });
  const rows = await page.$$eval('#ladder tbody tr', (all) => all.map((row) => row.textContent));
  assert.ok(rows.length >= 2 && rows.some((row) => row.includes('LoRA')), rows.join());
  const fitting = await page.$$eval('#ladder tbody tr', (all) => all.findIndex((row) => row.querySelector('.good')));
  const said = await page.$$eval('#ladder tbody tr', (all, i) => [...all[i].cells].map((cell) => cell.textContent), fitting);
  await drawnAfter(page, () => page.$$eval('#ladder .take', (all, i) => all[i].click(), fitting));
  await page.waitForFunction('/Fits/.test(document.querySelector(".verdict").textContent)');
  const taken = await answer(page);
  assert.deepEqual([seconds(taken.step.time_s), taken.memory.fits], [said[2], true]);
  sameAs(taken, printed(await page.evaluate('ridgeline.asked.current()')));
  assert.equal(await page.$('#ladder'), null);
  assert.deepEqual(faults, []);
  await close();
});

test('LoRA, parallelism and software have controls that leave nothing behind', async () => {
  const { page, faults, close } = await open();
  const summary = (title) => page.$$eval('details.more > summary', (all, name) => { const one = all.find((element) => element.textContent === name); one.parentElement.open = true; }, title);
  const choose = async (label, value) => {
    const id = await page.$$eval('.field label', (all, name) => all.find((one) => one.textContent === name).htmlFor, label);
    await drawnAfter(page, () => page.select(`#${id}`, value));
  };
  const scenario = () => page.evaluate('ridgeline.asked.current().scenario');
  await choose('Network', 'llama-7b');
  await choose('Chip', 'hardware:nvidia-rtx-3090');
  await choose('Precision', 'amp-bf16');
  assert.match(await text(page, '.verdict'), /Does not fit/);
  await summary('LoRA');
  await drawnAfter(page, () => typed(page, 'Rank', '16'));
  await choose('Frozen weights', 'nf4');
  const state = await page.evaluate('ridgeline.asked.current()');
  assert.deepEqual(state.scenario.training.lora, { rank: 16, frozen_weights: 'nf4' });
  await page.waitForFunction('ridgeline.lab.answer.question.scenario.training.lora?.frozen_weights === "nf4"');
  sameAs(await answer(page), printed(state));
  assert.match(await text(page, '.verdict'), /Fits/);
  await choose('Frozen weights', '');
  await drawnAfter(page, () => typed(page, 'Rank', ''));
  assert.equal('lora' in (await scenario()).training, false, 'no adapters with all defaults');
  await choose('Chip', 'cluster:h200-x4');
  await choose('Strategy', 'fsdp');
  assert.equal((await answer(page)).parallel.gpus, 4);
  await choose('PyTorch', (await (await fetch(`${address}api/software`)).json())[0]);
  assert.ok((await scenario()).software);
  await choose('PyTorch', '');
  await choose('Strategy', '');
  assert.deepEqual(Object.keys(await scenario()).sort(), ['cluster', 'model', 'training']);
  assert.deepEqual(faults, []);
  await close();
});

test('the playground shows the prediction of one GEMM, its waves and its staircase', async () => {
  const { page, faults, close } = await open();
  await page.evaluate("ridgeline.asked.update((s) => { s.scenario.hardware = 'nvidia-a100-sxm4-80gb'; })");
  await page.click('[data-view=gemm]');
  await page.waitForSelector('#staircase canvas');
  const said = () => page.$eval('#gemm-answer', (place) => place.textContent);
  const asked = async (set = '') => (await (await fetch(`${address}api/kernels?hardware=nvidia-a100-sxm4-80gb${set}`, { method: 'POST', body: JSON.stringify({ op: 'mm', dtype: 'bf16', params: { m: 2176, n: 3072, k: 4096, layout: 'nt' } }) })).json()).predicted;
  const put = (key, value) => page.$eval(`#gemm-${key}`, (input, text) => { input.value = text; input.dispatchEvent(new Event(input.tagName === 'SELECT' ? 'change' : 'input')); }, value);
  const whole = await asked();
  await put('m', '2176');
  await page.waitForFunction((time) => document.getElementById('gemm-answer').textContent.includes(time), {}, seconds(whole.time_us * 1e-6));
  for (const part of [percent(lastWave(whole.waves)), percent(whole.occupancy), percent(whole.l2_hit_rate)]) assert.ok((await said()).includes(part), part);
  assert.ok((await text(page, '#gemm-kernels')).includes(whole.kernels[0].name));
  const drawn = await page.evaluate("ridgeline.chartAt('staircase').getOption().series[0].data");
  assert.deepEqual(drawn.map(([size]) => size), stairsOf(2176));
  assert.ok(drawn.some(([size, time]) => size === 2176 && Math.abs(time / whole.time_us - 1) < 1e-9), 'the size at hand is a point');
  // The sliders of the chip apply, a size that is none is marked, and the link holds the sizes.
  await page.$eval('[data-key="sm.count"]', (range) => { range.value = -1; range.dispatchEvent(new Event('input')); });
  const fewer = await asked('&set=sm.count%3D54');
  assert.ok(fewer.waves > whole.waves);
  await page.waitForFunction((time) => document.getElementById('gemm-answer').textContent.includes(time), {}, seconds(fewer.time_us * 1e-6));
  for (const wrong of ['0', '1.5', 'many', '']) {
    await put('n', wrong);
    assert.deepEqual(await page.$eval('#gemm-n', (input) => [input.getAttribute('aria-invalid'), input.closest('.card').querySelector('.stale') !== null]), ['true', true], wrong);
  }
  await put('n', '3072');
  await page.waitForFunction('!document.querySelector("#content .stale")');
  await page.click('#do-link');
  const hash = await page.evaluate('location.hash');
  assert.deepEqual(faults, []);
  await close();
  const again = await open(hash);
  await again.page.waitForSelector('#gemm-answer');
  assert.equal(await again.page.$eval('#gemm-m', (input) => input.value), '2176');
  await again.close();
  assert.deepEqual(gemmOf({ look: { gemm_m: 7, gemm_n: -1, gemm_type: 'fp8' } }), { m: 7, n: 3072, k: 4096, type: 'bf16', along: 'm' });
  assert.deepEqual([lastWave(1.75), lastWave(2), lastWave(0.25), lastWave(0)], [0.75, 1, 0.25, 0]);
  for (const size of [1, 7, 2048, 65536]) { const all = stairsOf(size); assert.ok(all.includes(size) && all.length > 1 && all.every((one, i) => one > 0 && one <= 65536 && (i === 0 || one > all[i - 1])), size); }
});

test('a sweep and a guess that cannot be asked are marked at their fields', async () => {
  const { page, faults, close } = await open();
  await page.click('[data-view=sweep]');
  await page.waitForSelector('#run-sweep');
  const marked = () => page.$$eval('#content [aria-invalid]', (all) => all.map((input) => [input.id, document.getElementById(`${input.id}-mistake`).textContent]));
  const put = (id, value) => page.$eval(`#${id}`, (input, text) => { input.value = text; input.dispatchEvent(new Event('input')); }, value);
  await put('values-1', ' , ');
  await page.click('#run-sweep');
  assert.deepEqual(await marked(), [['values-1', 'Enter values, with commas between them.']]);
  await put('values-1', 'many');
  assert.deepEqual(await marked(), [], 'another text is not marked before it is run');
  await page.click('#run-sweep');
  await page.waitForSelector('#values-1[aria-invalid]');
  assert.match((await marked())[0][1], /^Expected a whole number/);
  await put('values-1', '1');
  await put('key-1', 'training.mico_batch');
  await page.click('#run-sweep');
  await page.waitForSelector('#key-1[aria-invalid]');
  assert.match((await marked())[0][1], /^Unknown key.*micro_batch/);
  await page.click('[data-view=exercises]');
  await page.waitForSelector('#guess');
  await page.click('#check');
  assert.match((await marked())[0]?.join() ?? '', /^guess,/);
  await page.type('#guess', 'many');
  assert.deepEqual(await marked(), []);
  await page.click('#check');
  await page.waitForSelector('#guess[aria-invalid]');
  assert.match(await text(page, '#guess-mistake'), /many.*expected a number/);
  assert.deepEqual(faults.filter((fault) => !fault.includes('400 (Bad Request)')), []);
  await close();
});

test('wrong axes of a sweep are found before it is asked', () => {
  const axis = (key, ...values) => ({ key, values });
  assert.deepEqual(mistakesOf([axis('a', 1), axis('')]), {});
  assert.deepEqual(mistakesOf([axis(''), axis('')]), { 'key-1': 'Enter a key to sweep over.' });
  assert.deepEqual(Object.keys(mistakesOf([axis('a', 1), axis('b')])), ['values-2']);
  assert.deepEqual(Object.keys(mistakesOf([axis('a', 1), axis('a', 2)])), ['key-2']);
  assert.deepEqual(Object.keys(mistakesOf([axis('', 1), axis('b', 2)])), ['key-1']);
  assert.deepEqual(refusedField('sweep:1:2 (hardware.dram.bandwidth=x): dram.bandwidth: expected a number', [axis('a', 1), axis('hardware.dram.bandwidth', 'x')]), { id: 'values-2', reason: 'expected a number' });
  assert.equal(refusedField('the server ended', [axis('a', 1), axis('')]), null);
});

test('Back and Forward go through views and exercises, and the address follows', async () => {
  const { page, faults, close } = await open();
  const here = () => page.evaluate(() => { const { view, look, scenario } = JSON.parse(new URLSearchParams(location.hash.slice(1)).get('state')); return { view, exercise: look?.exercise ?? null, batch: scenario.training.micro_batch }; });
  const at = async (seen, go) => {
    await go();
    await page.waitForFunction((id) => ridgeline.lab.drawnView === id && document.querySelector(`[data-view=${id}]`).getAttribute('aria-pressed') === 'true', {}, seen.view);
    if (seen.exercise) await page.waitForFunction((number) => document.querySelector('#exercise h2')?.textContent.startsWith(`${number}. `), {}, seen.exercise);
    await page.waitForFunction((view) => location.hash.includes(`view%22%3A%22${view}`), {}, seen.view);
    if (seen.batch) assert.equal(await page.evaluate('ridgeline.asked.current().scenario.training.micro_batch'), seen.batch);
  };
  const back = () => page.evaluate('history.back()');
  const forward = () => page.evaluate('history.forward()');
  const click = (selector) => () => page.$eval(selector, (button) => button.click());
  await at({ view: 'memory' }, click('[data-view=memory]'));
  await drawnAfter(page, () => page.evaluate('ridgeline.asked.update((s) => { s.scenario.training.micro_batch = 8; })'));
  await at({ view: 'exercises', exercise: 1 }, click('[data-view=exercises]'));
  await at({ view: 'exercises', exercise: 5 }, click('[data-exercise="5"]'));
  await at({ view: 'exercises', exercise: 38 }, click('[data-exercise="38"]'));
  await at({ view: 'exercises', exercise: 5 }, back);
  await at({ view: 'exercises', exercise: 1 }, back);
  await at({ view: 'memory', batch: 8 }, back);
  await at({ view: 'overview', batch: 8 }, back);
  assert.deepEqual(await here(), { view: 'overview', exercise: null, batch: 8 }, 'the question stays as it is');
  await at({ view: 'memory', batch: 8 }, forward);
  await at({ view: 'exercises', exercise: 1 }, forward);
  // An address that is typed brings its own question; Back leaves it.
  const state = { ...(await page.evaluate('ridgeline.asked.current()')), view: 'kernels' };
  state.scenario.training.micro_batch = 2;
  await at({ view: 'kernels', batch: 2 }, () => page.evaluate((hash) => { location.hash = hash; }, fragment(state)));
  await at({ view: 'exercises', exercise: 1 }, back);
  assert.deepEqual(faults, []);
  await close();
});

/** Where an element is in the window, and which part of it can be seen there. */
const seenAt = (page, selector) => page.$eval(selector, (element) => {
  const { top, bottom, left, right, height } = element.getBoundingClientRect();
  return { top, bottom, left, right, height, shown: element.checkVisibility() && height > 0 };
});

test('the verdict comes first and the roofline is above the fold; a phone sees the answer before the controls', async () => {
  const wide = await open('', { width: 1440, height: 900 });
  const verdict = await seenAt(wide.page, '#summary');
  const roofline = await seenAt(wide.page, '#roofline');
  assert.ok(verdict.shown && verdict.bottom < roofline.top && roofline.top > 0 && roofline.bottom <= 900 && roofline.height > 300, JSON.stringify({ verdict, roofline }));
  assert.deepEqual(await wide.page.$$eval('.verdict > div > span', (all) => all.map((one) => one.textContent)), ['Verdict', 'Step time', 'Memory', 'Limited by']);
  await drawnAfter(wide.page, () => wide.page.evaluate('ridgeline.asked.update((s) => { s.scenario.training.micro_batch = 512; })'));
  const { memory } = await answer(wide.page);
  const said = await text(wide.page, '.verdict');
  for (const part of ['Does not fit', `${bytes(memory.needed_bytes - memory.capacity_bytes)} are missing`, bytes(memory.needed_bytes), 'if it had the memory']) assert.ok(said.includes(part), `${part}: ${said}`);
  assert.deepEqual(wide.faults, []);
  await wide.close();
  const { page, faults, close } = await open('', { width: 390, height: 844 });
  assert.ok((await seenAt(page, '.verdict')).bottom < 844, 'the verdict is in the first screen');
  assert.equal((await seenAt(page, '#controls')).shown, false);
  assert.ok((await text(page, '#question')).includes('bert-large'));
  await page.click('#question');
  assert.equal(await page.$eval('#question', (bar) => bar.getAttribute('aria-expanded')), 'true');
  assert.ok((await seenAt(page, '#controls')).shown);
  const line = await seenAt(page, '#verdict');
  assert.ok(line.shown && line.height > 20 && line.top > 0 && line.bottom <= 844, 'the answer stays in sight while the question is changed');
  await typed(page, 'Batch', '0');
  const still = await seenAt(page, '#verdict');
  assert.ok(still.height > 20 && still.bottom <= 844, 'also where it is of another question');
  await page.click('#question');
  assert.equal((await seenAt(page, '#controls')).shown, false);
  assert.deepEqual(faults, []);
  await close();
});

test('a click on any exercise opens it in sight, in reading order', async () => {
  for (const size of [{ width: 1440, height: 900 }, { width: 390, height: 844 }]) {
    const { page, faults, close } = await open('', size);
    await page.click('[data-view=exercises]');
    await page.waitForFunction('document.querySelector("#exercise h2")?.textContent.startsWith("1. ")');
    assert.ok((await seenAt(page, '#exercise h2')).bottom < size.height, 'exercise 1 is open at the start');
    const numbers = await page.$$eval('[data-exercise]', (all) => all.map((button) => [Number(button.dataset.exercise), button.textContent]));
    numbers.forEach(([number, title], i) => assert.ok(number === i + 1 && title.startsWith(`${i + 1}. `), title));
    for (const number of [40, 2, 21, 11, 38].concat(size.width > 900 ? numbers.map(([n]) => n) : [])) {
      await page.$eval('#all-exercises', (details) => { details.open = true; });
      await page.click(`[data-exercise="${number}"]`);
      await page.waitForFunction((title) => document.querySelector('#exercise-place h2')?.textContent === title, {}, numbers[number - 1][1]);
      const { top, bottom, left, right } = await seenAt(page, '#exercise-place h2');
      assert.ok(top >= 0 && bottom <= size.height && left >= 0 && right <= size.width, `${number}: ${top} to ${bottom} at ${size.width}`);
    }
    assert.deepEqual(faults, []);
    await close();
  }
});

test('the tour covers nothing that it asks about', async () => {
  for (const size of [{ width: 1440, height: 900 }, { width: 390, height: 844 }]) {
    const { page, faults, close } = await open('', size);
    await page.$eval('#do-tour', (button) => button.click());
    for (const [i, at] of ['#summary .verdict', '#time-by-class', '#roofline', '#timeline', '#kernels thead', '#roofline', '#summary .verdict', '#memory', '#sensitivity thead'].entries()) {
      await page.waitForFunction((number) => document.getElementById('tour-title').textContent.startsWith(`${number}. `), {}, i + 1);
      await page.waitForSelector('#tour-guesses button:enabled');
      const [asked, tour] = [await seenAt(page, at), await seenAt(page, '#tour')];
      assert.ok(asked.shown && asked.top >= 0 && asked.top < size.height && (asked.bottom <= tour.top + 1 || asked.top >= tour.bottom), `${at} at ${size.width}: ${JSON.stringify({ asked, tour })}`);
      await page.$eval('#tour-next', (button) => button.click());
    }
    assert.deepEqual(faults, []);
    await close();
  }
});

test('the keyboard alone moves a slider, undoes it and takes the tour', async () => {
  const { page, faults, close } = await open();
  await page.focus('[data-key="dram.bandwidth"]');
  await drawnAfter(page, () => page.keyboard.press('ArrowRight'));
  assert.ok((await page.evaluate('ridgeline.asked.current().set'))['dram.bandwidth'].endsWith(' TB/s'));
  assert.equal(await page.evaluate('document.activeElement.dataset.key'), 'dram.bandwidth');
  await page.keyboard.down('Control');
  await drawnAfter(page, () => page.keyboard.press('z'));
  await page.keyboard.up('Control');
  assert.deepEqual(await page.evaluate('ridgeline.asked.current().set'), {});
  await page.focus('#do-tour');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#tour-next');
  const stops = Number(/of (\d+)/.exec(await text(page, '#tour-next'))[1]);
  for (let i = 1; i <= stops; i += 1) {
    await page.waitForFunction((number) => document.getElementById('tour-title').textContent.startsWith(`${number}. `), {}, i);
    // Each stop but the last asks, has no answer before the guess, and then says what the prediction says, with a number in it.
    if (i < stops) {
      await page.waitForFunction('document.activeElement.parentElement.id === "tour-guesses"');
      assert.match(await text(page, '#tour-asks'), /\?$/);
      assert.equal(await text(page, '#tour-says'), '');
      await page.keyboard.press('Enter');
      await page.waitForFunction('/^(Right|Not quite)\\..*\\d/.test(document.getElementById("tour-says").textContent)');
    }
    await page.waitForFunction('document.activeElement.id === "tour-next"');
    await page.keyboard.press('Enter');
  }
  await page.waitForFunction('!document.querySelector("#tour")');
  // Who leaves early finds the question as it was.
  const state = await page.evaluate('ridgeline.asked.current()');
  await page.keyboard.press('Enter');
  await page.waitForFunction('ridgeline.asked.current().view === "overview"');
  await page.keyboard.press('Escape');
  await page.waitForFunction('!document.querySelector("#tour")');
  assert.deepEqual(await page.evaluate('ridgeline.asked.current()'), state);
  assert.deepEqual(faults, []);
  await close();
});

describe('beside each other', { concurrency: 2 }, () => besides.forEach((one) => alone(...one)));
