// The question: network, chips, training, and numbers of the chip on sliders around what its file says.
import { h } from '../dom.js';
import { shipped } from './ask.js';
import { field, fresh, mistakeIn } from './field.js';
import { current, get, put, update } from './state.js';

const kOctaves = 2; // a slider goes from a quarter to four times the shipped number
const kSteps = 24; // of an octave
export const kTraining = [
  ['training.micro_batch', 'Batch'], ['training.sequence_length', 'Sequence'], ['training.gradient_accumulation', 'Accumulation'],
  ['training.precision', 'Precision'], ['training.attention', 'Attention'], ['training.optimizer', 'Optimizer'],
  ['training.activation_checkpointing', 'Checkpointing'], ['training.compile', 'torch.compile'], ['training.cuda_graphs', 'CUDA graphs'],
];
const kMore = [
  ['LoRA', [['training.lora.rank', 'Rank'], ['training.lora.targets', 'Layers'], ['training.lora.frozen_weights', 'Frozen weights'], ['training.lora.dtype', 'Adapter type']]],
  ['Several GPUs', [['training.parallel.strategy', 'Strategy'], ['training.parallel.data', 'Data parallel'], ['training.parallel.tensor', 'Tensor parallel'], ['training.parallel.pipeline', 'Pipeline stages'], ['training.parallel.schedule', 'Schedule'], ['training.parallel.context', 'Context parallel'], ['training.parallel.expert', 'Expert parallel']]],
  ['Memory and software', [['training.weight_dtype', 'Weights loaded in'], ['training.activation_offload', 'Offload'], ['allocator.expandable_segments', 'Expandable segments'], ['software', 'PyTorch'], ['host', 'Host']]],
];
const kNeeded = ['training.micro_batch', 'training.sequence_length']; // keys that a question keeps once it has them
export const kChip = [
  ['clock.sustained', 'Clock'], ['clock.tensor', 'Clock, tensor cores'], ['sm.count', 'SMs'], ['dram.bandwidth', 'DRAM bandwidth'], ['dram.capacity', 'Memory size'],
  ['l2.capacity', 'L2 size'], ['l2.read_bandwidth', 'L2 bandwidth'], ['sm.rates.tensor_bf16', 'Tensor cores, bf16'], ['sm.rates.tensor_tf32', 'Tensor cores, TF32'],
  ['sm.rates.fp32', 'CUDA cores, fp32'], ['power.limit', 'Power limit'], ['launch.gap', 'Gap of launches'],
];

const option = (value, title = value) => h('option', { value }, title);

function choice(path, title, about, names) {
  const select = h('select', { onchange: (event) => update((s) => put(s.scenario, path, event.target.value || undefined), path) }, option('', 'default'), names.map((name) => option(name)));
  const show = (s) => {
    const value = get(s.scenario, path);
    const name = typeof value === 'object' && value ? JSON.stringify(value) : String(value ?? '');
    if (![...select.options].some((o) => o.value === name)) select.append(option(name));
    select.value = name;
    select.disabled = typeof value === 'object' && value !== null;
  };
  return { element: field(title, about, select, path).element, show };
}

/** A whole number. One that cannot be asked is marked as it is typed, and the question stays as it was; without a default an
 *  empty field is a mistake too. */
function whole(path, title, about, { minimum: least, maximum: most }) {
  let before; // the value of the question while the field is marked
  const valueOf = (s) => get(s.scenario, path);
  const input = h('input', { inputmode: 'numeric', autocomplete: 'off', placeholder: 'default', oninput: read, onkeydown: step });
  const { element, mark } = field(title, about, input, path);
  function read() {
    const kept = valueOf(current());
    const unset = input.value.trim() === '' && (kept === undefined || !kNeeded.includes(path));
    const mistake = unset ? null : mistakeIn(input.value, least, most);
    before = kept;
    mark(mistake);
    if (mistake === null && (unset ? kept !== undefined : Number(input.value) !== kept)) update((s) => put(s.scenario, path, unset ? undefined : Number(input.value)), path);
  }
  function step(event) {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!by || !Number.isFinite(Number(input.value))) return;
    event.preventDefault();
    input.value = Math.min(most, Math.max(least, Math.round(Number(input.value)) + by));
    read();
  }
  const show = (s) => {
    if (input.hasAttribute('aria-invalid') && before === valueOf(s)) return;
    mark(null);
    if (document.activeElement !== input || Number(input.value) !== valueOf(s)) input.value = valueOf(s) ?? '';
  };
  return { element, show };
}

function toggle(path, title, about) {
  const box = h('input', { type: 'checkbox', onchange: ({ target }) => update((s) => put(s.scenario, path, target.checked || undefined), path) });
  return { element: field(title, about, box, path).element, show: (s) => { box.checked = get(s.scenario, path) === true; } };
}

/** A control of a key as the schema describes it; `files`: the names of shipped files for the keys that take one. */
function controlOf(schema, path, title, files = {}) {
  const spec = path.split('.').reduce((at, key) => (at.properties ?? at.anyOf.find((one) => one.properties).properties)[key], schema);
  const about = spec.description;
  const names = files[path] ?? spec.enum ?? spec.anyOf?.find((one) => one.enum)?.enum;
  if (names) return choice(path, title, about, names);
  return spec.type === 'boolean' ? toggle(path, title, about) : whole(path, title, about, spec);
}

/** "4.8 TB/s" to its number and its unit; null for what is no number. */
export function parted(row) {
  const match = /^([-+]?[\d.]+(?:e[-+]?\d+)?)\s*(\D.*)?$/i.exec(`${row.value} ${row.unit}`.trim());
  return match && Number(match[1]) > 0 ? { number: Number(match[1]), unit: match[2] ?? '' } : null;
}

function slider(key, title, row, mark = 'data-key') {
  const { number: base, unit } = parted(row);
  const isWhole = Number.isInteger(base) && unit === '';
  const valueAt = (octaves) => (isWhole ? Math.max(1, Math.round(base * 2 ** octaves)) : Number((base * 2 ** octaves).toPrecision(4)));
  const withUnit = (value) => `${value}${unit && ` ${unit}`}`;
  const id = fresh();
  const range = h('input', {
    type: 'range', id, min: -kOctaves, max: kOctaves, step: 1 / kSteps, [mark]: key, 'aria-describedby': `${id}-about`,
    oninput: ({ target }) => {
      const at = Number(target.value);
      update((s) => { if (Math.abs(at) < 1e-9) delete s.set[key]; else s.set[key] = withUnit(valueAt(at)); }, `hardware.${key}`);
    },
  });
  const output = h('output', { for: id });
  const reset = h('button', { type: 'button', class: 'small', onclick: () => update((s) => { delete s.set[key]; }), 'aria-label': `reset ${title} to the shipped number` }, 'reset');
  const about = h('p', { id: `${id}-about`, hidden: true }, `Shipped: ${withUnit(base)}. ${row.source}. ${row.meaning ?? ''}.`.replace('..', '.'));
  const more = h('button', { type: 'button', class: 'small', 'aria-expanded': 'false', 'aria-label': `source of ${title}: where the number is from`, title: `${withUnit(base)}: ${row.source}`, onclick: () => { about.hidden = !about.hidden; more.setAttribute('aria-expanded', String(!about.hidden)); } }, 'source');
  const element = h('div', { class: 'slider', title: `${row.meaning ?? key}. Shipped: ${withUnit(base)} (${row.source})` },
    h('div', { class: 'top' }, h('label', { for: id }, title), output, reset, more), h('div', { class: 'track' }, range), about);
  const show = (s) => {
    const value = s.set[key] ?? withUnit(base);
    const at = Math.log2(parseFloat(value) / base);
    if (Math.abs(Number(range.value) - at) > 0.51 / kSteps || document.activeElement !== range) range.value = Number.isFinite(at) ? at : 0;
    output.textContent = value;
    range.setAttribute('aria-valuetext', s.set[key] === undefined ? `${value}, as shipped` : value);
    element.classList.toggle('changed', s.set[key] !== undefined);
    reset.hidden = s.set[key] === undefined;
  };
  return { element, show };
}

/** The GPU behind a scenario: its own, or that of its cluster. */
export async function gpuOf({ cluster, hardware }) {
  if (!cluster) return typeof hardware === 'string' ? hardware : null;
  if (typeof cluster === 'object') return cluster.gpu ?? null;
  return (await shipped(`hardware/${cluster}`)).values.gpu?.value ?? null;
}

const kept = new Map();

/** Sliders of the chip's numbers at another place: [[key, title]]. An element that stays as it is when a view is drawn anew. */
export function keptSliders(id, keys) {
  const known = kept.get(id);
  if (known?.place.isConnected) return h('div', { id, 'data-kept': '' });
  const place = h('div', { id, 'data-kept': '' });
  const one = { place, sliders: [], name: null };
  kept.set(id, one);
  one.show = async (s) => {
    const name = await gpuOf(s.scenario).catch(() => null);
    if (name !== one.name) {
      one.name = name;
      const sheet = name && (await shipped(`hardware/${name}`).catch(() => null));
      one.sliders = sheet ? keys.filter(([key]) => sheet.values[key] && parted(sheet.values[key])).map(([key, title]) => slider(key, title, sheet.values[key], 'data-also')) : [];
      place.replaceChildren(...(one.sliders.length ? one.sliders.map((each) => each.element) : [h('p', {}, 'The sliders need a GPU that is shipped.')]));
    }
    one.sliders.forEach((each) => each.show(current()));
  };
  one.show(current());
  return place;
}
const showKept = (s) => kept.forEach((one) => one.place.isConnected && one.show(s));

function chipSliders() {
  const place = h('div', { id: 'chip' });
  let sliders = [];
  let shown = null;
  async function show(s) {
    const name = await gpuOf(s.scenario).catch(() => null);
    const extra = Object.keys(s.set).filter((key) => !kChip.some(([known]) => known === key)).join();
    if (`${name} ${extra}` === shown) return sliders.forEach((one) => one.show(s));
    shown = `${name} ${extra}`;
    const sheet = name && (await shipped(`hardware/${name}`).catch(() => null));
    if (!sheet || shown !== `${name} ${extra}`) {
      if (!sheet) { sliders = []; place.replaceChildren(h('p', {}, 'The sliders need a GPU that is shipped.')); }
      return;
    }
    const rows = sheet.values;
    const listed = [...kChip, ...extra.split(',').filter(Boolean).map((key) => [key, key])].filter(([key]) => rows[key] && parted(rows[key]));
    sliders = listed.map(([key, title]) => slider(key, title, rows[key]));
    const others = Object.keys(rows).filter((key) => parted(rows[key]) && !listed.some(([known]) => known === key));
    const add = h('select', { onchange: ({ target }) => { const key = target.value; if (key) update((st) => { const { number, unit } = parted(rows[key]); st.set[key] = `${number}${unit && ` ${unit}`}`; }); } }, option('', 'add …'), others.map((key) => option(key)));
    place.replaceChildren(...sliders.map((one) => one.element), field('Another number', 'Any number of the GPU', add).element);
    sliders.forEach((one) => one.show(current()));
  }
  return { element: place, show };
}

function hardwareChoice(gpus, clusters) {
  const select = h('select', {
    onchange: ({ target }) => update((s) => {
      const [kind, name] = target.value.split(':');
      delete s.scenario.hardware;
      delete s.scenario.cluster;
      s.scenario[kind] = name;
      s.set = {};
    }),
  }, h('optgroup', { label: 'one GPU' }, gpus.map((g) => option(`hardware:${g.name}`, g.title))), h('optgroup', { label: 'several GPUs' }, clusters.map((c) => option(`cluster:${c.name}`, c.title))));
  const show = ({ scenario: { hardware, cluster } }) => {
    const value = cluster ? `cluster:${typeof cluster === 'object' ? 'own' : cluster}` : `hardware:${hardware}`;
    if (![...select.options].some((o) => o.value === value)) select.append(option(value, value.split(':')[1]));
    select.value = value;
  };
  return { element: field('Chip', 'One GPU, or a cluster of several', select, 'hardware').element, show };
}

/** Controls that a section folds away, open once the scenario has a value for one of them. */
function section(schema, [title, keys], files) {
  const all = keys.map(([path, name]) => controlOf(schema, path, name, files));
  const element = h('details', { class: 'more' }, h('summary', {}, title), all.map((one) => one.element));
  const show = (s) => {
    all.forEach((one) => one.show(s));
    if (keys.some(([path]) => get(s.scenario, path) !== undefined)) element.open = true;
  };
  return { element, show };
}

/** Fills `place`; returns a function that shows a state. */
export async function controls(place) {
  const [schemas, gpus, clusters, models, scenarios, software, host] = await Promise.all(['schema/scenario', 'hardware', 'clusters', 'models', 'scenarios', 'software', 'hosts'].map(shipped));
  const schema = schemas.$defs.scenario;
  const ready = h('select', { onchange: async ({ target }) => {
    if (!target.value) return;
    const scenario = await shipped(`scenarios/${target.value}`);
    delete scenario.measured;
    target.value = '';
    update((s) => { s.scenario = structuredClone(scenario); s.set = {}; });
  } }, option('', 'open …'), scenarios.map((name) => option(name)));
  const engine = h('select', { onchange: ({ target }) => update((s) => { s.engine = target.value; }) }, ['analytic', 'roofline', 'simulate'].map((name) => option(name)));
  const all = [
    hardwareChoice(gpus, clusters), choice('model', 'Network', 'The network that is trained', models.map((m) => m.name)),
    ...kTraining.map(([path, title]) => controlOf(schema, path, title)),
    { element: field('Engine', 'analytic: cost models; roofline: peaks of the datasheet; simulate: thread blocks one by one', engine, 'engine').element, show: (s) => { engine.value = s.engine; } },
    ...kMore.map((one) => section(schema, one, { software, host })),
  ];
  const chip = chipSliders();
  place.replaceChildren(h('h2', {}, 'Question'), field('Scenario', 'A scenario that is shipped', ready).element, ...all.map((one) => one.element), h('h2', {}, 'Numbers of the chip'), chip.element);
  all.push(chip);
  return (s) => { all.forEach((one) => one.show(s)); showKept(s); };
}
