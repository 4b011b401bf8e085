// Questions to the server. Nothing else is asked of the network.
import { changes } from './state.js';

const kPatience = 150; // ms after which a question is given up for a newer one

/** Of a server that asks for one: it stands in the link that the server printed, and is kept for this window. */
function token() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given) sessionStorage.setItem('ridgeline-token', given);
  return given ?? sessionStorage.getItem('ridgeline-token');
}
const client = Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, '0')).join('');

/** What the server says is wrong: message, and file, line, column, key where it knows them. */
export class Mistake extends Error {
  constructor(status, error) {
    super(error?.message ?? `the server answers ${status}`);
    this.status = status;
    this.where = error ?? {};
  }
}

async function answerOf(path, options, read = (response) => response.json()) {
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Mistake(0, { message: 'The server does not answer. Start it again, then reload this page.' });
  }
  if (!response.ok) throw new Mistake(response.status, (await response.json()).error);
  return read(response);
}

const remembered = new Map();
/** Of what is shipped, asked once. */
export function shipped(path) {
  if (!remembered.has(path)) remembered.set(path, answerOf(`/api/${path}`).catch((error) => { remembered.delete(path); throw error; }));
  return remembered.get(path);
}
export const look = (path) => answerOf(`/api/${path}`);

export function targetOf(question, more = {}, kind = 'predict') {
  const query = new URLSearchParams();
  for (const change of changes(question)) query.append('set', change);
  if (question.engine !== 'analytic') query.set('engine', question.engine);
  for (const [key, value] of Object.entries(more)) query.set(key, value);
  return `/api/${kind}?${query}`;
}
export const predict = (question, more, signal) => answerOf(targetOf(question, more), { method: 'POST', body: question.text ?? JSON.stringify(question.scenario), signal });
/** Kernel cases, a line each, to their lines. */
export const kernels = (query, cases) => answerOf(`/api/kernels?${query}`, { method: 'POST', body: cases }, async (response) => (await response.text()).trim().split('\n').map((line) => JSON.parse(line)));
/** Collectives, a line each, to their lines. */
export const collectives = (cluster, cases) => answerOf(`/api/collectives?${new URLSearchParams({ cluster })}`, { method: 'POST', body: cases }, async (response) => (await response.text()).trim().split('\n').map((line) => JSON.parse(line)));
/** A sweep that is shipped, by its name. */
export const shippedSweep = (name) => answerOf(`/api/sweep?${new URLSearchParams({ name })}`, { method: 'POST', body: '' });
export const fit = (question) => answerOf(targetOf(question, {}, 'fit'), { method: 'POST', body: JSON.stringify(question.scenario) });
export const compare = (sides, engine, signal) => answerOf(`/api/compare?engine=${engine}`, { method: 'POST', body: JSON.stringify({ sides: sides.map((s) => ({ label: s.label, scenario: s.scenario, set: changes(s) })) }), signal });

/** Asks one question at a time; of those that come meanwhile the last. `work(question, signal, {client, sequence})` asks. */
export function newestOnly(work, done, failed) {
  let running = null;
  let next = null;
  let sequence = 0;
  async function start(question) {
    const mine = { abort: new AbortController(), since: performance.now() };
    running = mine;
    try {
      const answer = await work(question, mine.abort.signal, { client, sequence: (sequence += 1) });
      if (!mine.abort.signal.aborted) done(answer, question);
    } catch (error) {
      if (error.name !== 'AbortError' && error.status !== 409 && !next) failed(error, question);
    }
    running = null;
    if (next) {
      const waiting = next;
      next = null;
      start(waiting);
    }
  }
  return (question) => {
    if (!running) return void start(question);
    next = question;
    const mine = running;
    setTimeout(() => { if (running === mine && next) mine.abort.abort(); }, Math.max(0, kPatience - (performance.now() - mine.since)));
  };
}

/** A long question over a WebSocket: {answer: promise, cancel()}. */
export function long(target, body, progress) {
  const socket = new WebSocket(`ws://${location.host}/api/socket${token() ? `?token=${token()}` : ''}`);
  const answer = new Promise((resolve, reject) => {
    socket.onopen = () => socket.send(JSON.stringify({ id: 1, target, body }));
    socket.onerror = () => reject(new Mistake(0, { message: 'the server does not answer' }));
    socket.onclose = () => reject(new Mistake(0, { message: 'the server ended' }));
    socket.onmessage = ({ data }) => {
      const said = JSON.parse(data);
      if (said.progress) return progress(said.progress);
      socket.close();
      if (said.status === 200) resolve(said.answer);
      else reject(new Mistake(said.status ?? 0, (said.answer ?? said).error));
    };
  });
  return { answer, cancel: () => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify({ cancel: 1 })) };
}
