// Numbers as a person writes them.

const formats = new Map(); // a format takes longer to make than to use
function withDigits(most) {
  if (!formats.has(most)) formats.set(most, new Intl.NumberFormat('en', { maximumFractionDigits: most, useGrouping: true }));
  return formats.get(most);
}

/** Three significant digits without an exponent. */
export function digits(value, significant = 3) {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return withDigits(Math.min(12, Math.max(0, significant - whole))).format(value);
}

function scaled(value, steps, last) {
  const size = Math.abs(value);
  for (const [limit, unit] of steps) if (size >= limit) return `${digits(value / limit)} ${unit}`;
  return `${digits(value / last[0])} ${last[1]}`;
}

export const seconds = (s) => (Math.abs(s) < 1e-9 ? '0 µs' : scaled(s, [[1, 's'], [1e-3, 'ms']], [1e-6, 'µs']));
export const bytes = (b) => scaled(b, [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']], [1, 'B']);
export const flops = (f) => scaled(f, [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M']], [1, '']) + 'FLOP';
export const rate = (r) => scaled(r, [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M']], [1, '']) + 'FLOP/s';
export const bandwidth = (b) => scaled(b, [[1e12, 'T'], [1e9, 'G'], [1e6, 'M']], [1, '']) + 'B/s';
export const percent = (share) => `${digits(Math.abs(share) < 1e-7 ? 0 : 100 * share)} %`;
export const count = (n) => withDigits(3).format(n);
export const signed = (text, value) => (value > 0 ? `+${text}` : text.replace('-', '−'));
export const words = (key) => key.replaceAll('_', ' ');
const kLimits = { compute: 'arithmetic', dram: 'DRAM bandwidth', l2: 'L2 bandwidth', launch: 'kernel launches', power: 'power limit', link: 'GPU links' };
export const limitName = (key) => kLimits[key] ?? words(key);
