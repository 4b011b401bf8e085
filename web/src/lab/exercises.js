// Exercises: a prediction first, hints after, the simulator's answer last. What was done is kept in this browser.
import { card, h } from '../dom.js';
import { digits, percent } from '../format.js';
import { kernels, look, shipped } from './ask.js';
import { put, update } from './state.js';

const kKept = 'ridgeline-exercises';
const kFlags = { '--model': 'model', '--hardware': 'hardware', '--cluster': 'cluster', '--batch': 'training.micro_batch', '--seq': 'training.sequence_length', '--accumulation': 'training.gradient_accumulation', '--precision': 'training.precision', '--attention': 'training.attention', '--optimizer': 'training.optimizer.name', '--implementation': 'training.optimizer.implementation', '--checkpointing': 'training.activation_checkpointing' };

function done() {
  try {
    return JSON.parse(localStorage.getItem(kKept)) ?? {};
  } catch {
    return {};
  }
}
function keep(number, what) {
  const all = done();
  all[number] = { ...all[number], ...what };
  try {
    localStorage.setItem(kKept, JSON.stringify(all));
  } catch { /* a browser that keeps nothing */ }
}

const paragraphs = (text) => h('div', { class: 'text' }, text.trim().split(/\n\s*\n/).map((p) => h('p', {}, p.replaceAll('\n', ' '))));

/** What a command of an exercise asks: a shipped scenario and its changes; null for other commands. */
export function questionOf(command) {
  const words = (command.match(/'[^']*'|"[^"]*"|\S+/g) ?? []).map((w) => w.replace(/^['"]|['"]$/g, ''));
  if (words[0] !== 'ridgeline' || words[1] !== 'predict') return null;
  const asked = { name: null, changes: [] };
  for (let i = 2; i < words.length; i += 1) {
    const flag = words[i];
    if (kFlags[flag]) asked.changes.push([kFlags[flag], words[(i += 1)]]);
    else if (flag === '--set') {
      const change = words[(i += 1)].replace(/="(.*)"$/, '=$1');
      asked.changes.push([change.slice(0, change.indexOf('=')), change.slice(change.indexOf('=') + 1)]);
    } else if (/^scenarios\/.*\.yaml$/.test(flag)) asked.name = flag.slice(10, -5);
  }
  return asked;
}

/** The cases and parameters of `echo … | ridgeline kernels …`; null for other commands. */
export function casesOf(command) {
  const match = /^echo (['"])(.*)\1 \| ridgeline kernels (.*)$/s.exec(command);
  if (!match) return null;
  const words = (match[3].match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? []).map((w) => w.replace(/["']/g, ''));
  const query = new URLSearchParams();
  for (let i = 0; i < words.length; i += 1) if (['--hardware', '--set', '--engine', '--software'].includes(words[i])) query.append(words[i].slice(2), words[(i += 1)]);
  return { cases: match[2].replaceAll('\\n', '\n'), query };
}

/** What a kernel case is predicted to take. */
function kernelAnswer({ cases, query }) {
  const told = h('div', { role: 'status' });
  const run = async () => {
    try {
      const lines = await kernels(query, cases);
      told.replaceChildren(...lines.map(({ predicted: p, error }) => (p ? h('p', {}, `${digits(p.time_us, 4)} µs (${digits(p.low_us, 3)} to ${digits(p.high_us, 3)}), limited by ${p.limiter}, occupancy ${percent(p.occupancy)}, ${digits(p.waves)} waves, L2 hits ${percent(p.l2_hit_rate)}: ${p.kernels.map((k) => `${k.name}, ${k.grid.join(' × ')} blocks of ${k.block}`).join('; ')}`) : h('p', { class: 'bad' }, error))));
    } catch (error) {
      told.replaceChildren(h('p', { class: 'bad' }, error.message));
    }
  };
  return h('div', {}, h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'run-case', onclick: run }, 'Run')), told);
}

async function open(asked) {
  const scenario = asked.name ? structuredClone(await shipped(`scenarios/${asked.name}`)) : {};
  delete scenario.measured;
  update((s) => {
    s.scenario = scenario;
    s.set = {};
    for (const [key, value] of asked.changes) {
      const number = /^\d+(\.\d+)?$/.test(value) ? Number(value) : value === 'true' ? true : value === 'false' ? false : value;
      if (key.startsWith('hardware.')) s.set[key.slice(9)] = value;
      else put(s.scenario, key, number);
    }
    s.view = 'overview';
  });
}

function solution(e) {
  const unit = e.unit ? ` ${e.unit}` : '';
  return [h('p', {}, h('b', {}, `Simulated: ${digits(e.answer, 4)}${unit}`)), e.measured ? h('p', {}, `Measured: ${digits(e.measured.value, 4)}${unit} (${e.measured.source})`) : null, paragraphs(e.explanation)].filter(Boolean);
}

function exercise(e, changed) {
  const known = done()[e.number] ?? {};
  const told = h('div', { role: 'status', id: 'exercise-told' });
  const guess = h('input', { id: 'guess', autocomplete: 'off', inputmode: 'decimal', value: known.guess ?? '', 'aria-describedby': 'guess-about' });
  const hints = h('div', { id: 'hints' });
  const hint = h('button', { type: 'button', id: 'hint' }, 'Hint');
  const reveal = h('button', { type: 'button', id: 'reveal' }, 'Show the answer');
  const allow = (guessed) => { hint.disabled = reveal.disabled = !guessed; };
  let hinted = 0;
  async function check(event) {
    event.preventDefault();
    if (!guess.value.trim()) return;
    told.textContent = 'Simulating …';
    try {
      const said = await look(`exercises/${e.number}?${new URLSearchParams({ answer: guess.value.trim() })}`);
      keep(e.number, { guess: guess.value.trim(), right: said.correct || done()[e.number]?.right === true });
      told.replaceChildren(h('p', { class: said.correct ? 'good' : 'bad' }, said.correct ? 'Right.' : 'Not quite. A hint may help.'), ...(said.correct ? solution(said) : []));
      allow(true);
      changed();
    } catch (error) {
      told.replaceChildren(h('p', { class: 'bad' }, error.message));
    }
  }
  hint.addEventListener('click', () => {
    const command = e.explore[hinted];
    hinted += 1;
    const asked = questionOf(command);
    const cases = casesOf(command);
    hints.append(h('pre', {}, command), cases ? kernelAnswer(cases) : asked ? h('div', { class: 'buttons' }, h('button', { type: 'button', onclick: () => open(asked) }, 'Open in the lab')) : '');
    hint.disabled = hinted >= e.explore.length;
  });
  reveal.addEventListener('click', async () => {
    told.textContent = 'Simulating …';
    const said = await look(`exercises/${e.number}?solution=1`);
    told.replaceChildren(...solution(said));
    keep(e.number, { seen: true });
    changed();
  });
  allow(known.guess !== undefined);
  const form = h('form', { class: 'row', onsubmit: check }, h('label', {}, `Your prediction${e.unit ? ` in ${e.unit}` : ''}`, guess), h('button', { type: 'submit', class: 'primary', id: 'check' }, 'Check'));
  return card(`${e.number}. ${e.title}`, '', paragraphs(e.question), form, h('p', { id: 'guess-about' }, `Say a number before you look: ${percent(e.tolerance)} off is right.`), h('div', { class: 'buttons' }, hint, reveal), hints, told);
}

export function exercisesView() {
  const list = h('ol', { id: 'exercise-list' });
  const place = h('div', {});
  const told = h('p', { id: 'exercise-progress' });
  let all = [];
  let chosen = null;
  function fill() {
    const known = done();
    told.textContent = `${all.filter((e) => known[e.number]?.right).length} of ${all.length} right, kept in this browser.`;
    list.replaceChildren(...all.map((e) => h('li', {}, h('button', { type: 'button', 'aria-current': chosen === e.number ? 'true' : undefined, onclick: () => choose(e.number) }, `${e.number}. ${e.title}${known[e.number]?.right ? ' ✓' : known[e.number]?.seen ? ' (seen)' : ''}`))));
  }
  async function choose(number) {
    chosen = number;
    fill();
    place.replaceChildren(exercise(await look(`exercises/${number}`), fill));
  }
  shipped('exercises').then((known) => { all = known; fill(); });
  return { elements: [h('div', { class: 'exercises' }, card('Exercises', 'Each asks for a prediction first.', told, list), place)], show: () => {} };
}
