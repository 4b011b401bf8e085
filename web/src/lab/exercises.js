// Exercises: a prediction first, hints after, the simulator's answer last. What was done is kept in this browser.
import { card, h } from '../dom.js';
import { percent } from '../format.js';
import { look as ask, shipped } from './ask.js';
import { chapters, paragraphs, solution } from './exercise_parts.js';
import { stepsToExplore } from './explore.js';
import { note } from './field.js';
import { look, update } from './state.js';

const kKept = 'ridgeline-exercises-by-title';

function done() {
  try {
    return JSON.parse(localStorage.getItem(kKept)) ?? {};
  } catch {
    return {};
  }
}
function keep(title, what) {
  const all = done();
  all[title] = { ...all[title], ...what };
  try {
    localStorage.setItem(kKept, JSON.stringify(all));
  } catch { /* a browser that keeps nothing */ }
}

function exercise(e, changed, following) {
  const known = done()[e.title] ?? {};
  const steps = stepsToExplore(e);
  const told = h('div', { role: 'status', id: 'exercise-told' });
  const guess = h('input', { id: 'guess', autocomplete: 'off', inputmode: 'decimal', value: known.guess ?? '', 'aria-describedby': 'guess-about' });
  const { said: mistake, mark } = note(guess);
  guess.addEventListener('input', () => mark(null));
  const hints = h('div', { id: 'hints' });
  const hint = h('button', { type: 'button', id: 'hint' }, 'Hint');
  const reveal = h('button', { type: 'button', id: 'reveal' }, 'Show the answer');
  const allow = (guessed) => { hint.disabled = !guessed || hinted >= steps.length; reveal.disabled = !guessed; };
  let hinted = 0;
  async function check(event) {
    event.preventDefault();
    if (!guess.value.trim()) return mark(`Enter a number${e.unit ? ` in ${e.unit}` : ''} first.`);
    told.textContent = 'Simulating …';
    try {
      const said = await ask(`exercises/${e.number}?${new URLSearchParams({ answer: guess.value.trim() })}`);
      keep(e.title, { guess: guess.value.trim(), right: said.correct || done()[e.title]?.right === true });
      told.replaceChildren(h('p', { class: said.correct ? 'good' : 'bad' }, said.correct ? 'Right.' : 'Not quite.'), ...(said.correct ? [...solution(said), next()] : [h('p', { id: 'why-not' }, said.hint), h('p', {}, 'Think again, or take a hint: the next thing to try.')]));
      allow(true);
      changed();
    } catch (error) {
      told.replaceChildren();
      mark(error.message);
    }
  }
  const next = () => (following ? h('div', { class: 'buttons' }, h('button', { type: 'button', id: 'next-exercise', onclick: following.go }, `Next: ${following.title}`)) : '');
  hint.addEventListener('click', () => {
    const { says, controls } = steps[hinted];
    hints.append(h('div', { class: 'step' }, h('p', {}, says), ...controls()));
    hinted += 1;
    hint.disabled = hinted >= steps.length;
  });
  reveal.addEventListener('click', async () => {
    told.textContent = 'Simulating …';
    const said = await ask(`exercises/${e.number}?solution=1`);
    told.replaceChildren(...solution(said), next());
    keep(e.title, { seen: true });
    changed();
  });
  allow(known.guess !== undefined);
  const form = h('form', { class: 'row', onsubmit: check }, h('label', {}, `Your prediction${e.unit ? ` in ${e.unit}` : ''}`, guess), h('button', { type: 'submit', class: 'primary', id: 'check' }, 'Check'), mistake);
  const section = card(`${e.number}. ${e.title}`, `${e.chapter}, about ${e.minutes} minutes`, paragraphs(e.question), form, h('p', { id: 'guess-about' }, `Enter a number before you look. An answer within ${percent(e.tolerance)} counts as right.`), h('div', { class: 'buttons' }, hint, reveal), hints, told);
  section.id = 'exercise';
  return section;
}

const phone = matchMedia('(max-width: 900px)');

/** The list beside the exercise; on a phone it opens above it. The first exercise that is not solved yet is open at the start. */
export function exercisesView() {
  const list = h('div', { id: 'exercise-list' });
  const place = h('div', { id: 'exercise-place' });
  const told = h('p', { id: 'exercise-progress' });
  const folded = h('details', { id: 'all-exercises' }, h('summary', {}, 'All exercises'), list);
  folded.open = !phone.matches;
  phone.addEventListener('change', () => { folded.open = !phone.matches; });
  let all = [];
  let chosen = null;
  let jumps = false; // from one exercise to the next: the cursor goes with it
  function fill() {
    const known = done();
    told.textContent = `${all.filter((e) => known[e.title]?.right).length} of ${all.length} right, kept in this browser.`;
    const focused = document.activeElement?.dataset?.exercise;
    const button = (e) => h('button', { type: 'button', 'data-exercise': e.number, 'aria-current': chosen === e.number ? 'true' : undefined, onclick: () => choose(e.number) }, `${e.number}. ${e.title}${known[e.title]?.right ? ' ✓' : known[e.title]?.seen ? ' (seen)' : ''}`);
    list.replaceChildren(...chapters(all).flatMap(([name, ones]) => [h('h3', {}, `${name} (${ones.filter((e) => known[e.title]?.right).length} of ${ones.length})`), h('ol', {}, ones.map((e) => h('li', {}, button(e))))]));
    if (focused) list.querySelector(`[data-exercise="${focused}"]`)?.focus();
  }
  const choose = (number) => {
    if (number === chosen) return inSight();
    update((s) => { s.look = { ...s.look, exercise: number }; }, 'view');
  };
  /** The exercise from its first line on. */
  function inSight() {
    if (phone.matches) {
      folded.open = false;
      place.scrollIntoView({ block: 'start' });
    } else document.getElementById('answer').scrollTop = 0;
  }
  async function open(number) {
    const moved = chosen !== null;
    chosen = number;
    fill();
    const at = all.findIndex((e) => e.number === number);
    place.replaceChildren(card(`${number}. ${all[at].title}`, 'Simulating …'));
    if (moved) inSight();
    if (!phone.matches) list.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
    const after = all[at + 1];
    try {
      const e = await ask(`exercises/${number}`);
      if (chosen === number) place.replaceChildren(exercise(e, fill, after && { title: after.title, go: () => { jumps = true; choose(after.number); } }));
      if (jumps) document.getElementById('guess')?.focus({ preventScroll: true });
      jumps = false;
    } catch (error) {
      if (chosen === number) place.replaceChildren(card(`${number}. ${all[at].title}`, error.message));
    }
  }
  async function show(state) {
    try {
      all = await shipped('exercises');
    } catch (error) {
      told.textContent = error.message;
      return;
    }
    const wanted = all.find((e) => e.number === state.look?.exercise) ?? all.find((e) => !done()[e.title]?.right) ?? all[0];
    if (wanted.number === chosen) return;
    const given = state.look?.exercise === wanted.number;
    open(wanted.number);
    if (!given) look('exercise', wanted.number);
  }
  return { elements: [h('div', { class: 'exercises' }, card('Exercises', 'Predict first, then look.', told, folded), place)], show };
}
