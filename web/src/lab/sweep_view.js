// A sweep of one or two keys around the question, with progress, and stopped on demand.
import { settle } from '../chart.js';
import { card, h } from '../dom.js';
import { sweep } from '../sections/sweep.js';
import { long } from './ask.js';
import { note } from './field.js';
import { changes, current, flow } from './state.js';

const kKeys = ['training.micro_batch', 'training.sequence_length', 'training.precision', 'training.attention', 'hardware', 'hardware.dram.bandwidth', 'hardware.sm.count', 'hardware.clock.sustained', 'hardware.l2.capacity'];

/** "1, 2, 4" to the values of an axis; numbers as numbers. */
export const valuesOf = (text) => text.split(',').map((v) => v.trim()).filter(Boolean).map((v) => (/^[-+]?\d+(\.\d+)?$/.test(v) ? Number(v) : v));

export function sweepOf(question, axes) {
  const scenario = structuredClone(question.scenario);
  const all = {};
  // What was changed of the chip is an axis with one value: a sweep's scenario has no place for it.
  for (const change of changes(question)) {
    const [key, value] = [change.slice(0, change.indexOf('=')), change.slice(change.indexOf('=') + 1)];
    if (!axes.some((axis) => axis.key === key)) all[key] = [value];
  }
  for (const { key, values } of axes) all[key] = values;
  return { title: `Sweep of ${axes.map((a) => a.key).join(' and ')}`, scenario, axes: all, goal: 'fastest', ...(question.engine === 'analytic' ? {} : { engine: question.engine }) };
}

/** What is wrong with the fields of the axes, before anything is asked: {id of the field: sentence}. */
export function mistakesOf([first, second]) {
  const wrong = {};
  if (!first.key && !second.key) wrong['key-1'] = 'Enter a key to sweep over.';
  for (const [i, { key, values }] of [first, second].entries()) {
    if (key && !values.length) wrong[`values-${i + 1}`] = 'Enter values, with commas between them.';
    if (!key && i === 0 && values.length && second.key) wrong['key-1'] = 'Enter the key of these values.';
  }
  if (first.key && first.key === second.key) wrong['key-2'] = 'Enter another key than the first one.';
  return wrong;
}

/** The field that a refused sweep is about, and why: "… (KEY=VALUE): KEY: reason"; null where that is not told. */
export function refusedField(message, axes) {
  const [, key, reason] = /\(([\w.]+)=[^)]*\): [\w.]+: (.*)/s.exec(message) ?? [];
  const at = axes.findIndex((axis) => axis.key === key);
  return at < 0 ? null : { id: `${/^unknown key/.test(reason) ? 'key' : 'values'}-${at + 1}`, reason };
}

export function sweepView(drawn) {
  const list = h('datalist', { id: 'sweep-keys' }, kKeys.map((key) => h('option', { value: key })));
  const notes = {};
  const input = (id, label, value, more = {}) => {
    const control = h('input', { id, value, ...more, oninput: () => notes[id].mark(null) });
    notes[id] = note(control);
    return h('div', {}, h('label', { for: id }, label), control, notes[id].said);
  };
  const form = h('form', { class: 'row', onsubmit: (event) => { event.preventDefault(); run(); } },
    input('key-1', 'Key', 'training.micro_batch', { list: 'sweep-keys' }), input('values-1', 'Values', '1, 2, 4, 8, 16, 32'),
    input('key-2', 'Second key (may be empty)', 'training.precision', { list: 'sweep-keys' }), input('values-2', 'Values', 'fp32, amp-bf16'),
    h('button', { type: 'submit', class: 'primary', id: 'run-sweep' }, 'Run'), h('button', { type: 'button', id: 'stop-sweep', disabled: '', onclick: () => running?.cancel() }, 'Stop'));
  const bar = h('progress', { id: 'sweep-progress', max: 1, value: 0, 'aria-label': 'Points done' });
  const told = h('p', { role: 'status', id: 'sweep-told' });
  const place = h('div', { class: 'contents' });
  let running = null;
  async function run() {
    const value = (id) => form.querySelector(`#${id}`).value.trim();
    const both = [1, 2].map((i) => ({ key: value(`key-${i}`), values: valuesOf(value(`values-${i}`)) }));
    const wrong = mistakesOf(both);
    for (const [id, { mark }] of Object.entries(notes)) mark(wrong[id] ?? null);
    if (Object.keys(wrong).length) return void form.querySelector('[aria-invalid]').focus();
    const axes = both.filter((axis) => axis.key);
    const stop = form.querySelector('#stop-sweep');
    stop.disabled = false;
    told.textContent = 'Running …';
    told.className = '';
    bar.value = 0;
    const begin = performance.now();
    running = long('/api/sweep', sweepOf(current(), axes), ({ done, total }) => { bar.max = total; bar.value = done; told.textContent = `${done} of ${total} points`; });
    try {
      const answer = await running.answer;
      told.textContent = `${answer.points.length} points in ${Math.round(performance.now() - begin)} ms`;
      bar.max = bar.value = 1;
      place.replaceChildren(...sweep(answer).map(settle));
      drawn();
    } catch (error) {
      const refused = refusedField(error.message, both);
      if (refused) notes[refused.id].mark(refused.reason);
      told.textContent = refused ? '' : error.message;
      told.className = 'bad';
    }
    running = null;
    stop.disabled = true;
  }
  return { elements: [card('Sweep', `The sweep predicts every combination of the values. Any key of the scenario or the chip can be swept: ${flow(kKeys.slice(0, 3)).slice(1, -1)} …`, list, form, bar, told), place], show: () => {} };
}
