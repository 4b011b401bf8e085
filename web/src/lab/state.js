// What is asked and shown: one value that a link holds, that changes go into, and that undo brings back.

const kFirst = {
  scenario: { hardware: 'nvidia-h200-sxm-141gb', model: 'bert-large', training: { micro_batch: 4, sequence_length: 512, precision: 'fp32' } },
  set: {}, // numbers that were changed: key below hardware, or from model, software, host or cluster on → value with its unit
  engine: 'analytic',
  view: 'overview',
  pinned: null, // {scenario, set, engine} that the answer is compared with
};
const kMostUndone = 200;
const kOneChange = 700; // ms: moves of one slider within it are one change

let state = structuredClone(kFirst);
let past = [];
let future = [];
let last = { key: '', at: 0 };
const listeners = [];

export const current = () => state;
export const listen = (listener) => listeners.push(listener);
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

function tell(reason) {
  for (const listener of listeners) listener(state, reason);
}

/** How the answer is looked at (a moment, a kernel): the link holds it, nothing is asked anew, nothing is undone. */
export function look(key, value) {
  const { look: before = {}, ...rest } = state;
  const { [key]: _, ...others } = before;
  const now = value === undefined || value === null ? others : { ...others, [key]: value };
  state = Object.keys(now).length ? { ...rest, look: now } : rest;
  tell('look');
}

/** `change` edits a copy. Changes of one key in a row are undone together; a view is changed without an undo. */
export function update(change, key = '') {
  const next = structuredClone(state);
  change(next);
  const now = performance.now();
  if (key !== 'view' && !(key && key === last.key && now - last.at < kOneChange)) {
    past.push(state);
    if (past.length > kMostUndone) past.shift();
  }
  if (key !== 'view') {
    future = [];
    last = { key, at: now };
  }
  state = next;
  tell(key);
}

function move(from, to) {
  if (!from.length) return;
  to.push(state);
  const { look: _, ...restored } = from.pop();
  state = { ...restored, view: state.view, ...(state.look && { look: state.look }) };
  last = { key: '', at: 0 };
  tell('undo');
}
export const undo = () => move(past, future);
export const redo = () => move(future, past);

export function get(object, path) {
  return path.split('.').reduce((value, key) => value?.[key], object);
}
/** undefined removes the key, and what it leaves empty below the first key: `lora: {}` would be adapters with all defaults. */
export function put(object, path, value) {
  const keys = path.split('.');
  const leaf = keys.pop();
  const places = [object];
  for (const key of keys) {
    const place = places.at(-1);
    if (typeof place[key] !== 'object' || !place[key]) {
      if (value === undefined) return;
      place[key] = {};
    }
    places.push(place[key]);
  }
  if (value !== undefined) places.at(-1)[leaf] = value;
  else {
    delete places.at(-1)[leaf];
    for (let i = places.length - 1; i > 1 && !Object.keys(places[i]).length; i -= 1) delete places[i - 1][keys[i - 1]];
  }
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The state as a fragment of an address, and back; what is no state is null. */
export const fragment = (value) => `#${new URLSearchParams({ state: JSON.stringify(value) })}`;
export function fromFragment(text) {
  try {
    const read = JSON.parse(new URLSearchParams(text.replace(/^#/, '')).get('state'));
    if (!isObject(read) || !isObject(read.scenario)) return null;
    const pinned = isObject(read.pinned) && isObject(read.pinned.scenario) ? { scenario: read.pinned.scenario, set: texts(read.pinned.set), engine: String(read.pinned.engine ?? 'analytic') } : null;
    return { scenario: read.scenario, set: texts(read.set), engine: String(read.engine ?? 'analytic'), view: String(read.view ?? 'overview'), pinned, ...looks(read.look) };
  } catch {
    return null;
  }
}
/** Numbers and short texts alone. */
function looks(read) {
  const kept = Object.entries(isObject(read) ? read : {}).filter(([, v]) => Number.isSafeInteger(v) || (typeof v === 'string' && v.length < 100));
  return kept.length ? { look: Object.fromEntries(kept) } : {};
}
const texts = (set) => Object.fromEntries(Object.entries(isObject(set) ? set : {}).map(([key, value]) => [key, String(value)]));

export function restore(value) {
  if (!value) return;
  past.push(state);
  state = value;
  tell('link');
}

/** Another view of the same question, as Back and Forward go: nothing is asked anew, nothing is undone. */
export function visit(view, seen) {
  const { look: _, ...rest } = state;
  state = { ...rest, view, ...(seen && { look: seen }) };
  tell('visit');
}

/** A changed number by its whole key: of the chip, unless it says whose it is. */
const whole = (key) => (/^(model|software|host|cluster)\./.test(key) ? key : `hardware.${key}`);

/** Changes as --set takes them. */
export const changes = (question) => Object.entries(question.set).map(([key, value]) => `${whole(key)}=${value}`);

const plain = (text) => /^[\w./=,:@%+-]+$/.test(text);
const quoted = (text) => (plain(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** A value as YAML on one line. */
export function flow(value) {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (isObject(value)) return `{${Object.entries(value).map(([k, v]) => `${k}: ${flow(v)}`).join(', ')}}`;
  return scalar(value);
}
function scalar(value) {
  if (typeof value !== 'string') return value === null ? 'null' : String(value);
  const safe = /^[A-Za-z_/][\w ./()+-]*$/.test(value) && !/^(true|false|null|yes|no|on|off|~)$/i.test(value) && !/ $/.test(value);
  return safe ? value : JSON.stringify(value);
}

/** The scenario as a YAML file. */
export function yaml(value, indent = '') {
  return Object.entries(value).map(([key, v]) => {
    if (isObject(v) && Object.keys(v).length && !Object.values(v).some(isObject) && indent) return `${indent}${key}: ${flow(v)}\n`;
    return isObject(v) && Object.keys(v).length ? `${indent}${key}:\n${yaml(v, `${indent}  `)}` : `${indent}${key}: ${flow(v)}\n`;
  }).join('');
}

/** Network, chip and training in a line, for people. */
export function configuration({ scenario, set, engine }) {
  const named = (value) => (isObject(value) ? value.name ?? value.family ?? value.gpu ?? 'its own' : value);
  const { training = {} } = scenario;
  const rest = Object.entries(training).filter(([key]) => !['micro_batch', 'sequence_length', 'precision'].includes(key)).map(([key, value]) => `${key.replaceAll('_', ' ')} ${flow(value)}`);
  const sizes = [training.micro_batch, training.sequence_length].filter((n) => n !== undefined).join(' × ');
  const changed = Object.entries(set).map(([key, value]) => `${key} ${value}`);
  return [named(scenario.model), named(scenario.cluster ?? scenario.hardware), sizes, training.precision, ...rest, ...changed, `engine ${engine}`].filter(Boolean).join(', ');
}

/** The command that predicts the same. */
export function command(question) {
  const words = ['ridgeline', 'predict'];
  const leaves = (value, path) => {
    if (isObject(value) && Object.keys(value).length && path !== 'model') for (const [key, v] of Object.entries(value)) leaves(v, path ? `${path}.${key}` : key);
    else words.push('--set', quoted(`${path}=${flow(value)}`));
  };
  leaves(question.scenario, '');
  for (const change of changes(question)) words.push('--set', quoted(change));
  if (question.engine !== 'analytic') words.push('--engine', question.engine);
  return words.join(' ');
}
