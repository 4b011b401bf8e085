// Steps to explore an exercise: each says in words what it asks, and the page runs it.
import { h } from '../dom.js';
import { digits, percent, seconds } from '../format.js';
import { table } from '../table.js';
import { collectives, kernels, shipped, shippedSweep } from './ask.js';
import { caseInWords, casesOf, collectiveInWords, collectivesOf, questionInWords, questionsOf, sheetOf, shippedSweepOf, stateOf } from './commands.js';
import { flow, update } from './state.js';

/** A button that runs something and shows what it gives. */
function runs(title, name, run) {
  const told = h('div', { role: 'status' });
  const start = async () => {
    try {
      told.replaceChildren(...(await run()));
    } catch (error) {
      told.replaceChildren(h('p', { class: 'bad' }, error.message));
    }
  };
  return [h('div', { class: 'buttons' }, h('button', { type: 'button', class: name, onclick: start }, title)), told];
}

const kernelSays = ({ predicted: p, error }) => (p
  ? h('p', {}, `${digits(p.time_us, 4)} µs (${digits(p.low_us, 3)} to ${digits(p.high_us, 3)}), limited by ${p.limiter}, occupancy ${percent(p.occupancy)}, ${digits(p.waves)} waves, L2 hits ${percent(p.l2_hit_rate)}: ${p.kernels.map((k) => `${k.name}, ${k.grid.join(' × ')} blocks of ${k.block}`).join('; ')}`)
  : h('p', { class: 'bad' }, error));

const collectiveSays = ({ predicted: p, error }) => (p
  ? h('p', {}, `${digits(p.time_us / 1e3, 4)} ms (${digits(p.low_us / 1e3, 3)} to ${digits(p.high_us / 1e3, 3)}), ${digits(p.bus_gb_per_s, 3)} GB/s of bus bandwidth, ${p.algorithm} over ${p.channels} channels, limited by ${p.limiter}`)
  : h('p', { class: 'bad' }, error));

/** The points of a sweep: what was set, and the step. */
function sweepTable({ axes, points }) {
  const columns = [
    ...axes.map((a) => ({ title: a.name, text: true, value: (p) => String(p.at[a.name]) })),
    { title: 'step', value: (p) => p.step_time_s ?? Infinity, show: (s) => (Number.isFinite(s) ? seconds(s) : 'does not run') },
  ];
  return table(columns, points, { id: 'sweep-numbers' });
}

/** The numbers of a GPU, each with its source, or those of a network. */
async function sheetTable(path) {
  const sheet = await shipped(path);
  const columns = [{ title: 'key', text: true, value: ([key]) => key }, { title: 'value', text: true, value: ([, value]) => value }];
  if (!sheet.values) return [table(columns, Object.entries(sheet).map(([key, value]) => [key, flow(value)]), { id: 'sheet-numbers' })];
  return [table([...columns, { title: 'source', text: true, class: 'name', value: ([, , source]) => source }], Object.entries(sheet.values).map(([key, { value, unit, source }]) => [key, `${value}${unit ? ` ${unit}` : ''}`, source]), { id: 'sheet-numbers' })];
}

async function open(question, view) {
  const now = await stateOf(question);
  const pinned = question.pinned ? { ...(await stateOf(question.pinned)), engine: 'analytic' } : null;
  update((s) => {
    Object.assign(s, now);
    if (pinned) s.pinned = pinned;
    s.view = pinned ? 'compare' : question.view ?? view;
  });
}

/** Steps of a command: {says, controls}; none of a command that the page cannot run. */
function stepsOf(command, view) {
  const cases = casesOf(command);
  if (cases) return [{ says: cases.cases.split('\n').map((line) => caseInWords(line, cases.query)).join(' '), controls: () => runs('Run', 'run-case', async () => (await kernels(cases.query, cases.cases)).map(kernelSays)) }];
  const exchanged = collectivesOf(command);
  if (exchanged) return [{ says: exchanged.cases.split('\n').map((line) => collectiveInWords(line, exchanged.cluster)).join(' '), controls: () => runs('Run', 'run-collective', async () => (await collectives(exchanged.cluster, exchanged.cases)).map(collectiveSays)) }];
  const swept = shippedSweepOf(command);
  if (swept) return [{ says: `Sweep ${swept.replaceAll('-', ' ')}.`, controls: () => runs('Run', 'run-shipped-sweep', async () => [sweepTable(await shippedSweep(swept))]) }];
  const sheet = sheetOf(command);
  if (sheet) return [{ says: `Look up the numbers of ${sheet.split('/')[1]}.`, controls: () => runs('Show', 'show-sheet', () => sheetTable(sheet)) }];
  return questionsOf(command).map((question) => ({
    says: questionInWords(question),
    controls: () => [h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'open-in-lab', onclick: () => open(question, view) }, question.pinned ? 'Compare in the lab' : 'Open in the lab'))],
  }));
}

/** What an exercise has to explore, in order. */
export const stepsToExplore = (e) => e.explore.flatMap((command) => stepsOf(command, e.view));
