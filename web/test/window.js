// A server of the program and a browser for the tests of the lab, and windows in it. RIDGELINE is the program; CHROMIUM the browser.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before } from 'node:test';
import puppeteer from 'puppeteer-core';

export let browser;
export let server;
export let address;

/** A server and the address it prints. */
export async function serve(...options) {
  const started = spawn(process.env.RIDGELINE, ['serve', '--port', '0', ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
  return [started, await new Promise((resolve) => started.stdout.once('data', (said) => resolve(String(said).trim())))];
}

before(async () => {
  [server, address] = await serve();
  browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--enable-precise-memory-info'], headless: true, timeout: 120000 });
});
after(async () => {
  await browser?.close();
  const ended = new Promise((resolve) => server.once('exit', resolve));
  server.kill('SIGTERM');
  assert.equal(await ended, 0, 'SIGTERM ends the server as asked');
});

/** Windows that a test is done with, empty: a new one takes five seconds of a processor, its process four of them. */
const left = [];

/** Opens the lab in a window that nobody else has. `faults` keeps whatever goes wrong in it or is asked of others, except the
 *  icon that an empty window asks for. */
export async function open(hash = '', { width = 1400, height = 1000, scheme = 'light', fresh = false } = {}) {
  const page = (!fresh && left.pop()) || await (await browser.createBrowserContext()).newPage();
  page.setDefaultTimeout(60000);
  const faults = [];
  const heard = {
    pageerror: (error) => faults.push(error.message),
    console: (message) => message.location().url?.endsWith('/favicon.ico') || faults.push(`${message.type()}: ${message.text()} ${message.location().url ?? ''}`.trim()),
    request: (request) => !request.url().startsWith(address) && !/^(data|blob):/.test(request.url()) && faults.push(`asks for ${request.url()}`),
  };
  for (const [what, hear] of Object.entries(heard)) page.on(what, hear);
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  await page.goto(address + hash);
  await page.waitForFunction('globalThis.ridgeline?.lab.drawn > 0 && document.querySelector("[data-key]")', { timeout: 60000 });
  const close = async () => {
    for (const [what, hear] of Object.entries(heard)) page.off(what, hear);
    if (fresh) return page.browserContext().close();
    await page.evaluate(() => { localStorage.clear(); sessionStorage.clear(); });
    await page.mouse.move(0, 0);
    await page.goto(`${address}lab.css`); // of the same place, so that the process stays
    return left.push(page);
  };
  return { page, faults, close };
}

/** Does something and waits for the picture that follows. */
export async function drawnAfter(page, work) {
  const before = await page.evaluate('ridgeline.lab.drawn');
  await work();
  await page.waitForFunction((count) => globalThis.ridgeline.lab.drawn > count, { timeout: 60000, polling: 20 }, before);
}
export const slide = (page, key, octaves) => drawnAfter(page, () => page.$eval(`[data-key="${key}"]`, (range, value) => { range.value = value; range.dispatchEvent(new Event('input')); }, octaves));
export const view = (page, id) => drawnAfter(page, () => page.click(`[data-view=${id}]`));
/** Clicks at a view and waits until it is drawn. */
export const opened = (id) => async (page) => {
  await page.click(`[data-view=${id}]`);
  await page.waitForFunction((name) => globalThis.ridgeline.lab.drawnView === name, { timeout: 60000 }, id);
};
