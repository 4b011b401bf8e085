// One colour a meaning, told apart by people who do not see red or green too (after Okabe and Ito), in light and dark.

const kLight = { blue: '#0072b2', orange: '#d55e00', green: '#009e73', purple: '#b0619a', yellow: '#d99a00', sky: '#56b4e9', grey: '#8b95a1', ink: '#16202c' };
const kDark = { blue: '#4aa8e8', orange: '#f58549', green: '#3cc79c', purple: '#d48ac0', yellow: '#f0c24b', sky: '#8fd0f5', grey: '#6d7885', ink: '#e6ebf0' };

const kHues = {
  tensor_contraction: 'blue', normalization: 'green', elementwise: 'yellow', optimizer: 'purple', copy: 'sky', communication: 'orange', idle: 'grey',
  compute: 'blue', dram: 'orange', l2: 'yellow', shared_memory: 'green', latency: 'purple', launch: 'grey', power: 'ink',
  weights: 'blue', gradients: 'sky', optimizer_state: 'purple', activations: 'green', temporaries: 'yellow', workspaces: 'orange', inputs: 'ink', cached_unused: 'grey',
};

export const dark = () => document.documentElement.dataset.theme === 'dark';
export const hue = (name) => (dark() ? kDark : kLight)[name];
export const colour = (meaning) => hue(kHues[meaning] ?? 'grey');
export const part = (index) => hue(['blue', 'orange', 'green', 'purple', 'yellow', 'sky'][index % 6]);

const known = new Map(); // of each theme: asking the document takes longer than drawing a bar
export function css(name) {
  const key = `${document.documentElement.dataset.theme} ${name}`;
  if (!known.has(key)) known.set(key, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return known.get(key);
}
