// Commands of the exercises as the page runs them: what each one asks, in words, without a terminal.
import { bytes, words } from '../format.js';
import { shipped } from './ask.js';
import { kChip, kTraining } from './controls.js';
import { put } from './state.js';

const kFlags = { '--model': 'model', '--hardware': 'hardware', '--cluster': 'cluster', '--software': 'software', '--batch': 'training.micro_batch', '--seq': 'training.sequence_length', '--accumulation': 'training.gradient_accumulation', '--precision': 'training.precision', '--attention': 'training.attention', '--optimizer': 'training.optimizer.name', '--implementation': 'training.optimizer.implementation', '--checkpointing': 'training.activation_checkpointing' };
const kViewOf = { '--memory-report': 'memory', '--memory-snapshot': 'memory', '--sensitivity': 'advice', '--modules': 'timeline' }; // what a flag shows is in this view
const kTitles = new Map([...kTraining, ...kChip.map(([key, title]) => [`hardware.${key}`, title])]);
const kScenario = /^(?:.*\/)?scenarios\/(.*)\.yaml$/;

const wordsOf = (text) => (text.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? []).map((w) => w.replace(/^(['"])(.*)\1$/, '$2').replace(/=(["'])(.*)\1$/, '=$2'));

/** Changes, scenarios and the view that words of a command name. */
function asks(words) {
  const asked = { names: [], changes: [], with: [], view: null };
  const parted = (text) => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)];
  for (let i = 0; i < words.length; i += 1) {
    const flag = words[i];
    asked.view ??= kViewOf[flag] ?? null;
    if (kFlags[flag]) asked.changes.push([kFlags[flag], words[(i += 1)]]);
    else if (flag === '--set') asked.changes.push(parted(words[(i += 1)]));
    else if (flag === '--parallel') asked.changes.push(...words[(i += 1)].split(',').map((one) => parted(`training.parallel.${one}`)));
    else if (flag === '--with') asked.with.push(words[(i += 1)].split(/ (?=[\w.]+=)/).map(parted));
    else if (kScenario.test(flag)) asked.names.push(kScenario.exec(flag)[1]);
  }
  return asked;
}

/** Questions of a command: a shipped scenario, its changes, the view that shows the answer; of a comparison `pinned` too, the
 *  side that each is compared with. Empty for other commands. */
export function questionsOf(command) {
  const [program, verb, ...words] = wordsOf(command);
  if (!/^(.*\/)?ridgeline$/.test(program) || !['predict', 'compare', 'fit'].includes(verb)) return [];
  const { names, changes, with: others, view } = asks(words);
  const first = { name: names[0] ?? null, changes };
  if (verb === 'predict') return [view ? { ...first, view } : first];
  if (verb === 'fit') return [{ ...first, view: 'memory', fit: true }];
  const sides = names.length > 1 ? names.slice(1).map((name) => ({ name, changes })) : others.map((more) => ({ name: names[0], changes: [...changes, ...more], more }));
  return sides.map((side) => ({ ...side, pinned: first }));
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

/** The collectives and the cluster of `echo … | ridgeline collectives …`; null for other commands. */
export function collectivesOf(command) {
  const match = /^echo (['"])(.*)\1 \| \S*ridgeline collectives --cluster ([\w.-]+)$/s.exec(command);
  return match && { cases: match[2].replaceAll('\\n', '\n'), cluster: match[3] };
}

/** A collective as a sentence: "all_reduce of 1.3 GB over 2 GPUs of rtx3090-x2-pcie". */
export function collectiveInWords(line, cluster) {
  const { op, bytes: size, gpus, nodes } = JSON.parse(line);
  return `Time ${words(op)} of ${bytes(size)}${gpus ? ` over ${gpus * (nodes ?? 1)} GPUs` : ''} of ${cluster}.`;
}

/** The shipped sweep that a command runs, by its name; null for other commands. */
export const shippedSweepOf = (command) => /^(?:.*\/)?ridgeline sweep (?:.*\/)?scenarios\/sweeps\/([\w.-]+)\.yaml$/.exec(command)?.[1] ?? null;

/** The numbers of a GPU or a network that a command prints: its path below /api; null for other commands. */
export function sheetOf(command) {
  const [program, verb, name] = wordsOf(command);
  return /^(.*\/)?ridgeline$/.test(program) && ['hardware', 'models'].includes(verb) && /^[\w.-]+$/.test(name ?? '') ? `${verb}/${name}` : null;
}

function changeInWords([key, value]) {
  if (key === 'hardware' || key === 'cluster') return `on ${value}`;
  const title = kTitles.get(key) ?? key.split('.').at(-1).replaceAll('_', ' ');
  return `${/^[A-Z][a-z]/.test(title) ? title[0].toLowerCase() + title.slice(1) : title} ${value}`;
}
const changesInWords = (changes) => (changes.length ? `, ${changes.map(changeInWords).join(', ')}` : '');

/** A question of a command as a sentence. */
export function questionInWords({ name, changes, pinned, more, fit }) {
  if (fit) return `Search the largest batch that fits: ${name}${changesInWords(changes)}.`;
  if (!pinned) return `Predict ${name}${changesInWords(changes)}.`;
  const first = `${pinned.name}${changesInWords(pinned.changes)}`;
  return more ? `Compare ${first} with the same at ${more.map(changeInWords).join(', ')}.` : `Compare ${first} with ${name}${changesInWords(changes)}.`;
}

/** A kernel case as a sentence: "mm in bf16, m 4096, n 4096, k 4096, on nvidia-t4". */
export function caseInWords(line, query) {
  const { op, dtype, params = {}, ...others } = JSON.parse(line);
  const listed = Object.entries({ ...params, ...others }).map(([key, value]) => `${key.replaceAll('_', ' ')} ${value}`);
  const set = query.getAll('set').map((change) => changeInWords([`hardware.${change.slice(0, change.indexOf('='))}`, change.slice(change.indexOf('=') + 1)]));
  return `Run the kernel ${[`${op}${dtype ? ` in ${dtype}` : ''}`, ...listed, `on ${query.get('hardware')}`, ...set, query.get('engine') && `engine ${query.get('engine')}`].filter(Boolean).join(', ')}.`;
}

/** The question that a command asks, as the lab keeps it. */
export async function stateOf({ name, changes }) {
  const scenario = name ? structuredClone(await shipped(`scenarios/${name}`)) : {};
  delete scenario.measured;
  const set = {};
  change(scenario, set, changes);
  return { scenario, set };
}

/** Puts changes, [key, value] as texts, into a scenario and the changed numbers beside it. */
export function change(scenario, set, changes) {
  for (const [key, value] of changes) {
    const plain = /^\d+(\.\d+)?$/.test(value) ? Number(value) : value === 'true' ? true : value === 'false' ? false : value;
    const [top] = key.split('.');
    if (key.startsWith('hardware.')) set[key.slice(9)] = value;
    else if (key !== top && ['model', 'software', 'host', 'cluster'].includes(top) && typeof scenario[top] !== 'object') set[key] = value;
    else put(scenario, key, plain);
    if (key === 'hardware') delete scenario.cluster;
    if (key === 'cluster') delete scenario.hardware;
  }
}
