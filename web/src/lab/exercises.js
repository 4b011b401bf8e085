// Exercises: a prediction first, hints after, the simulator's answer last. What was done is kept in this browser.
import { card, h } from '../dom.js';
import { digits, percent } from '../format.js';
import { kernels, look, shipped } from './ask.js';
import { chapters, paragraphs, solution } from './exercise_parts.js';
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

const wordsOf = (text) => (text.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? []).map((w) => w.replace(/^(['"])(.*)\1$/, '$2').replace(/=(["'])(.*)\1$/, '=$2'));
const kScenario = /^(?:.*\/)?scenarios\/(.*)\.yaml$/;

/** Changes and scenarios that words of a command name. */
function asks(words) {
  const asked = { names: [], changes: [], with: [] };
  const change = (text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)];
  for (let i = 0; i < words.length; i += 1) {
    const flag = words[i];
    if (kFlags[flag]) asked.changes.push([kFlags[flag], words[(i += 1)]]);
    else if (flag === '--set') asked.changes.push(change(words[(i += 1)]));
    else if (flag === '--parallel') asked.changes.push(...words[(i += 1)].split(',').map((one) => change(`training.parallel.${one}`)));
    else if (flag === '--with') asked.with.push(words[(i += 1)].split(/ (?=[\w.]+=)/).map(change));
    else if (kScenario.test(flag)) asked.names.push(kScenario.exec(flag)[1]);
  }
  return asked;
}

/** What a command of an exercise asks: a shipped scenario and its changes; of a comparison `pinned` too, its first side. null for
 *  other commands. */
export function questionOf(command) {
  const words = wordsOf(command);
  if (!/^(.*\/)?ridgeline$/.test(words[0]) || !['predict', 'compare'].includes(words[1])) return null;
  const { names, changes, with: others } = asks(words.slice(2));
  if (words[1] === 'predict') return { name: names[0] ?? null, changes };
  const pinned = { name: names[0] ?? null, changes };
  return names.length > 1 ? { name: names[1], changes, pinned } : others.length ? { name: names[0], changes: [...changes, ...others[0]], pinned } : null;
}

/** The cases and parameters of `echo … | ridgeline kernels …`; null for other commands. */
export function casesOf(command) {
  const match = /^echo (['"])(.*)\1 \| \S*ridgeline kernels (.*)$/s.exec(command);
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

/** The question that a command asks, as the lab keeps it. */
async function stateOf({ name, changes }) {
  const scenario = name ? structuredClone(await shipped(`scenarios/${name}`)) : {};
  delete scenario.measured;
  const set = {};
  for (const [key, value] of changes) {
    const plain = /^\d+(\.\d+)?$/.test(value) ? Number(value) : value === 'true' ? true : value === 'false' ? false : value;
    const [top] = key.split('.');
    if (key.startsWith('hardware.')) set[key.slice(9)] = value;
    else if (key !== top && ['model', 'software', 'host', 'cluster'].includes(top) && typeof scenario[top] !== 'object') set[key] = value;
    else put(scenario, key, plain);
    if (key === 'hardware') delete scenario.cluster;
    if (key === 'cluster') delete scenario.hardware;
  }
  return { scenario, set };
}

async function open(asked, view) {
  const now = await stateOf(asked);
  const pinned = asked.pinned ? { ...(await stateOf(asked.pinned)), engine: 'analytic' } : null;
  update((s) => {
    Object.assign(s, now);
    if (pinned) s.pinned = pinned;
    s.view = pinned ? 'compare' : view;
  });
}

/** A step of help: a text, a command to run, and where the page can run it itself. */
function step(e, command) {
  const cases = casesOf(command);
  const asked = questionOf(command);
  const shown = cases ? kernelAnswer(cases) : asked ? h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'open-in-lab', onclick: () => open(asked, e.view) }, asked.pinned ? 'Compare in the lab' : 'Open in the lab')) : '';
  return h('div', { class: 'step' }, h('pre', {}, command), shown);
}

function exercise(e, changed, following) {
  const known = done()[e.number] ?? {};
  const told = h('div', { role: 'status', id: 'exercise-told' });
  const guess = h('input', { id: 'guess', autocomplete: 'off', inputmode: 'decimal', value: known.guess ?? '', 'aria-describedby': 'guess-about' });
  const hints = h('div', { id: 'hints' });
  const hint = h('button', { type: 'button', id: 'hint' }, 'Hint');
  const reveal = h('button', { type: 'button', id: 'reveal' }, 'Show the answer');
  const allow = (guessed) => { hint.disabled = !guessed || hinted >= e.explore.length; reveal.disabled = !guessed; };
  let hinted = 0;
  async function check(event) {
    event.preventDefault();
    if (!guess.value.trim()) return;
    told.textContent = 'Simulating …';
    try {
      const said = await look(`exercises/${e.number}?${new URLSearchParams({ answer: guess.value.trim() })}`);
      keep(e.number, { guess: guess.value.trim(), right: said.correct || done()[e.number]?.right === true });
      told.replaceChildren(h('p', { class: said.correct ? 'good' : 'bad' }, said.correct ? 'Right.' : 'Not quite.'), ...(said.correct ? [...solution(said), next()] : [h('p', { id: 'why-not' }, said.hint), h('p', {}, 'Think again, or take a hint: the next thing to try.')]));
      allow(true);
      changed();
    } catch (error) {
      told.replaceChildren(h('p', { class: 'bad' }, error.message));
    }
  }
  const next = () => (following ? h('div', { class: 'buttons' }, h('button', { type: 'button', id: 'next-exercise', onclick: following.go }, `Next: ${following.title}`)) : '');
  hint.addEventListener('click', () => {
    hints.append(step(e, e.explore[hinted]));
    hinted += 1;
    hint.disabled = hinted >= e.explore.length;
  });
  reveal.addEventListener('click', async () => {
    told.textContent = 'Simulating …';
    const said = await look(`exercises/${e.number}?solution=1`);
    told.replaceChildren(...solution(said), next());
    keep(e.number, { seen: true });
    changed();
  });
  allow(known.guess !== undefined);
  const form = h('form', { class: 'row', onsubmit: check }, h('label', {}, `Your prediction${e.unit ? ` in ${e.unit}` : ''}`, guess), h('button', { type: 'submit', class: 'primary', id: 'check' }, 'Check'));
  const section = card(`${e.number}. ${e.title}`, `${e.chapter}, about ${e.minutes} minutes`, paragraphs(e.question), form, h('p', { id: 'guess-about' }, `Say a number before you look: ${percent(e.tolerance)} off is right.`), h('div', { class: 'buttons' }, hint, reveal), hints, told);
  section.id = 'exercise';
  return section;
}

export function exercisesView() {
  const list = h('div', { id: 'exercise-list' });
  const place = h('div', {});
  const told = h('p', { id: 'exercise-progress' });
  let all = [];
  let chosen = null;
  function fill() {
    const known = done();
    told.textContent = `${all.filter((e) => known[e.number]?.right).length} of ${all.length} right, kept in this browser.`;
    const focused = document.activeElement?.dataset?.exercise;
    const button = (e) => h('button', { type: 'button', 'data-exercise': e.number, 'aria-current': chosen === e.number ? 'true' : undefined, onclick: () => choose(e.number) }, `${e.number}. ${e.title}${known[e.number]?.right ? ' ✓' : known[e.number]?.seen ? ' (seen)' : ''}`);
    list.replaceChildren(...chapters(all).flatMap(([name, ones]) => [h('h3', {}, `${name} (${ones.filter((e) => known[e.number]?.right).length} of ${ones.length})`), h('ol', {}, ones.map((e) => h('li', {}, button(e))))]));
    if (focused) list.querySelector(`[data-exercise="${focused}"]`)?.focus();
  }
  async function choose(number, jump = false) {
    chosen = number;
    fill();
    const at = all.findIndex((e) => e.number === number);
    const after = all[at + 1];
    place.replaceChildren(exercise(await look(`exercises/${number}`), fill, after && { title: after.title, go: () => choose(after.number, true) }));
    if (jump || matchMedia('(max-width: 900px)').matches) {
      place.scrollIntoView({ block: 'start' });
      if (jump) document.getElementById('guess').focus({ preventScroll: true });
    }
  }
  shipped('exercises').then((known) => { all = known; fill(); });
  return { elements: [h('div', { class: 'exercises' }, card('Exercises', 'Each asks for a prediction first.', told, list), place)], show: () => {} };
}
